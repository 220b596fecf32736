// The Runs page: runs are found by words, compared by two ticks or more, kept under names, and deleted.

const MOST = 8; // as many as the program compares
const { base } = window.replayer;
const $ = (id) => document.getElementById(id);
const boxes = [...document.querySelectorAll('input[name="run"]')];

const ticked = () => boxes.filter(({ checked }) => checked).map(({ value }) => value);

const count = () => {
  const many = ticked().length;
  $("compare").disabled = many < 2 || many > MOST;
  $("compare").textContent = many > 1 ? `Compare ${many} runs` : "Compare";
  $("remove").disabled = !many;
  $("remove").textContent = many ? `Delete ${many} ${many > 1 ? "runs" : "run"}` : "Delete";
  $("keep").disabled = many !== 1 || !$("name").value.trim();
};

const change = async (place, fields) => {
  const body = new URLSearchParams(fields);
  const { success, message } = await (await fetch(`${base}${place}`, { method: "POST", body })).json();
  $("refused").hidden = success;
  $("refused").textContent = message ?? "";
  if (success) location.reload();
};
const remove = () => {
  const names = ticked();
  if (confirm(`Delete ${names.length} run folders for good?\n\n${names.join("\n")}`)) change("remove", names.map((name) => ["run", name]));
};
const keep = () => change("keep", { name: $("name").value.trim(), run: ticked()[0] });

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
  $("keep").onclick = keep;
  $("name").oninput = count;
  for (const button of document.querySelectorAll(".tag button")) button.onclick = () => change("forget", { name: button.value });
  $("words").oninput = search;
  count();
}
