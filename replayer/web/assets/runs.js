// The Runs page: two ticks or more can be compared.

const MOST = 8; // as many as the program compares
const button = document.getElementById("compare");
const boxes = [...document.querySelectorAll('input[name="run"]')];
const count = () => {
  const ticked = boxes.filter((box) => box.checked).length;
  button.disabled = ticked < 2 || ticked > MOST;
  button.textContent = ticked > 1 ? `Compare ${ticked} runs` : "Compare";
};
boxes.forEach((box) => (box.onchange = count));
if (button) count();
