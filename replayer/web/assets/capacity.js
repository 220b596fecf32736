// The Capacity page: starts and stops a search, and shows how its bracket closes and its curves grow.

const { base } = window.replayer;
const element = (id) => document.getElementById(id);
const form = element("search");

const send = async (place, body) => {
  const answer = await fetch(`${base}${place}`, { method: "POST", body });
  return answer.json();
};

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { success, message } = await send("capacities", new URLSearchParams(new FormData(form)));
  element("refused").hidden = success;
  element("refused").textContent = message;
  if (success) look();
});
element("stop").onclick = () => send("capacities/stop", new URLSearchParams());

// A scenario says which transactions limits can be of.
const suggest = (scenarios) => {
  const chosen = scenarios.find(({ name }) => name === form.elements.scenario.value);
  const names = chosen?.transactions ?? [];
  element("transactions").textContent = names.length ? `Transactions: ${names.join(", ")}. Limits are on a percentile or on a share of errors, such as ${names[0]}.errors < 0.1%.` : "";
  const limits = form.elements.limits;
  if (!limits.value || limits.value === form.dataset.suggested) limits.value = names.length ? `${names[0]}.p95 < 200ms` : "";
  form.dataset.suggested = limits.value;
};
if (form) {
  const scenarios = await (await fetch(`${base}scenarios`)).json();
  form.elements.scenario.onchange = () => suggest(scenarios);
  suggest(scenarios);
}

// What is known is drawn once, as the page that the search keeps: here it is shown within ours.
const read = async (name) => {
  const answer = await fetch(`${base}capacities/${name}/report.html`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  page.querySelectorAll("#theme, h1").forEach((each) => each.remove());
  return [...page.querySelector("main").children].map((each) => document.importNode(each, true));
};

let shown = "";
const show = async (search) => {
  element("now").hidden = search === null;
  const text = JSON.stringify(search);
  if (search === null || shown === text) return;
  const { about, goes_on: goesOn, is_ending: isEnding, document: found, is_run: isRun } = search;
  element("title").textContent = `${about}: ${goesOn ? (isEnding ? "ending" : "measuring") : "ended"}`;
  element("stop").hidden = !goesOn;
  element("stop").textContent = isEnding ? "Stop at once" : "Stop";
  element("report").hidden = isRun ? goesOn : !found;
  element("report").href = isRun ? `${base}runs/${search.name}` : `${base}capacities/${search.name}/report.html`;
  element("report").textContent = isRun ? "Report" : "Page with the curves";
  element("failure").hidden = !search.failure;
  element("failure").textContent = [search.failure, search.hint].filter(Boolean).join(": ");
  element("said").hidden = !goesOn || !search.said.length;
  element("said").textContent = search.said.join("\n");
  element("found").replaceChildren(...(found ? await read(search.name) : []));
  shown = text;
};

let timer = null;
const look = async () => {
  clearTimeout(timer);
  let search = null;
  try {
    search = await (await fetch(`${base}capacities/now`)).json();
    await show(search);
  } catch {
    // The bar says that the program cannot be reached.
  }
  timer = setTimeout(look, document.hidden || !search?.goes_on ? 3000 : 1000);
};
look();
