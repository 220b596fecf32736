// The Runs page: runs are found by words, compared by two ticks or more, and deleted.

const MOST = 8; // as many as the program compares
const { base } = window.replayer;
const $ = (id) => document.getElementById(id);
const boxes = [...document.querySelectorAll('input[name="run"]')];

const count = () => {
  const ticked = boxes.filter(({ checked }) => checked).length;
  $("compare").disabled = ticked < 2 || ticked > MOST;
  $("compare").textContent = ticked > 1 ? `Compare ${ticked} runs` : "Compare";
  $("remove").disabled = !ticked;
  $("remove").textContent = ticked ? `Delete ${ticked} ${ticked > 1 ? "runs" : "run"}` : "Delete";
};

const remove = async () => {
  const names = boxes.filter(({ checked }) => checked).map(({ value }) => value);
  if (!confirm(`Delete ${names.length} run folders for good?\n\n${names.join("\n")}`)) return;
  const body = new URLSearchParams(names.map((name) => ["run", name]));
  const { success, message } = await (await fetch(`${base}remove`, { method: "POST", body })).json();
  $("refused").hidden = success;
  $("refused").textContent = message ?? "";
  if (success) location.reload();
};

// A row is shown that has all words; what is hidden is not ticked.
const search = () => {
  const words = $("words").value.toLowerCase().split(/\s+/);
  let left = 0;
  for (const box of boxes) {
    const row = box.closest("tr");
    row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    if (row.hidden) box.checked = false;
    else left += 1;
  }
  $("left").textContent = left < boxes.length ? `${left} of ${boxes.length} runs` : "";
  count();
};

if (boxes.length) {
  boxes.forEach((box) => (box.onchange = count));
  $("remove").onclick = remove;
  $("words").oninput = search;
  count();
}
