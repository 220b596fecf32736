// The start page: says what an order would do while it is written, remembers it, and starts it.

const { base, make } = window.replayer;
const $ = (id) => document.getElementById(id);
const form = $("order");
const PAUSE_MS = 250; // chosen: nobody types so slowly in the midst of a word

const send = async (place) => {
  const targets = [...form.querySelectorAll("[name=targets]")];
  if (!targets.some(({ checked }) => checked)) return { success: false, message: "choose at least one target" };
  const answer = await fetch(place, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  return answer.json();
};
const refuse = (message) => {
  $("refused").hidden = !message;
  $("refused").textContent = message;
};

// One question after the other: the last answer belongs to what stands in the form.
let timer = null;
let asking = Promise.resolve();
const check = async () => {
  const { success, message, lines, command } = await send(`${base}check`);
  refuse(success ? "" : message);
  if (!success) return;
  $("shell").hidden = !command;
  $("lines").replaceChildren(...lines.flatMap(([label, text]) => [make("dt", { textContent: label }), make("dd", { textContent: text })]));
  $("command").textContent = command;
};
const ask = () => {
  clearTimeout(timer);
  timer = setTimeout(() => (asking = asking.then(check).catch((error) => console.warn(error))), PAUSE_MS);
};

const fields = () => [...form.elements].filter(({ name }) => name);
const values = () => fields().map((field) => [field.name, field.type === "checkbox" ? `${field.value}=${field.checked}` : field.value]);
// A program that was started with other options begins with those.
const KEPT = `replayer-order ${JSON.stringify(values())}`;
const keep = () => localStorage.setItem(KEPT, JSON.stringify(values()));
const kept = () => {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
};
const restore = () => {
  for (const [name, value] of kept())
    for (const field of fields().filter((each) => each.name === name))
      if (field.type === "checkbox") field.checked = value === `${field.value}=true` || (field.checked && value !== `${field.value}=false`);
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value)) field.value = value;
};

// Numbers follow the scenario, which says what it does.
let scenarios = [];
const facts = () => scenarios.find(({ name }) => name === form.elements.scenario.value);
const describe = () => {
  const found = facts();
  $("about").textContent = found?.about ?? "";
  const numbers = Object.entries(found?.numbers ?? {}).map(([name, said]) => {
    const field = make("label", { className: "field", textContent: `${name} ` });
    field.append(make("input", { type: "text", name, placeholder: said, inputMode: "numeric" }));
    return field;
  });
  $("numbers").hidden = !numbers.length;
  $("numbers").lastElementChild.replaceChildren(...numbers);
};
form.elements.scenario.onchange = () => {
  const found = facts();
  if (found) {
    form.elements.user_count.value = found.users;
    form.elements.spawn_rate.value = found.spawn_rate;
  }
  describe();
  keep();
  ask();
};

form.addEventListener("input", () => (keep(), ask()));
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  $("start").disabled = true;
  const { success, message } = await send(`${base.replace(/replayer\/$/, "")}swarm`);
  $("start").disabled = false;
  refuse(success ? "" : message);
  if (success) location.assign(`${base}live`);
});
const baseline = $("baseline");
if (baseline)
  baseline.onclick = async () => {
    const chosen = new FormData(form).getAll("targets").map((target) => ["targets", target]);
    const answer = await fetch(`${base}baseline`, { method: "POST", body: new URLSearchParams(chosen) });
    const { success, message } = await answer.json();
    refuse(success ? "" : message);
    if (success) location.assign(`${base}capacities`);
  };
$("copy").onclick = () => navigator.clipboard.writeText($("command").textContent);
$("forget").onclick = () => {
  localStorage.removeItem(KEPT);
  form.reset();
  describe();
  ask();
};

restore();
ask();
const cards = async () => {
  for (const { name, path, mount, options, free, data, wrong } of await (await fetch(`${base}targets`)).json()) {
    const card = [...document.querySelectorAll("[data-target]")].find(({ dataset }) => dataset.target === name);
    if (card) card.textContent = wrong ?? [path, mount, options, free, data].filter(Boolean).join(" · ");
    if (card && wrong) card.classList.add("wrong");
  }
};
cards();
scenarios = await (await fetch(`${base}scenarios`)).json();
describe();
restore();
ask();
