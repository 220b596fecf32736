// The Capacity page: starts and stops a search, and shows how its bracket closes and its curves grow.

import { hue, logMarks, write } from "./scale.js";
import { draw, words } from "./svg.js";

const { base, make } = window.replayer;
const element = (id) => document.getElementById(id);
const form = element("search");
const WIDTH = 480;
const HEIGHT = 220;
const SIDES = { left: 62, right: 470, top: 10, bottom: 196 };
const LINES = ["p50", "p95", "p99"];

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

// Latency by load, both logarithmic; the band is where the capacity lies.
const curve = ({ name, trials, capacity }) => {
  const measured = trials.filter(({ transaction }) => transaction).sort((one, other) => one.load - other.load);
  const times = measured.flatMap(({ transaction }) => LINES.map((line) => transaction[`${line}_ns`]).filter(Boolean));
  if (!times.length) return null;
  const loads = measured.map(({ load }) => load);
  const [low, high] = [Math.min(...loads) / 1.2, Math.max(...loads) * 1.2];
  const [least, most] = [Math.min(...times) / 1.3, Math.max(...times) * 1.3];
  const part = (value, from, to) => Math.log(value / from) / Math.log(to / from);
  const x = (load) => SIDES.left + Math.min(Math.max(part(load, low, high), 0), 1) * (SIDES.right - SIDES.left);
  const y = (time) => SIDES.bottom - part(time, least, most) * (SIDES.bottom - SIDES.top);
  const said = `${name}: latency by load, ${measured.length} trials`;
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said });
  if (capacity) {
    const width = Math.max(x(capacity.high) - x(capacity.low), 1);
    picture.append(draw("rect", { x: x(capacity.low), y: SIDES.top, width, height: SIDES.bottom - SIDES.top, fill: "var(--rule)" }));
  }
  for (const at of logMarks(low, high)) picture.append(words(x(at), SIDES.bottom + 16, "middle", write(at, "count")));
  for (const at of logMarks(least, most)) {
    picture.append(draw("line", { x1: SIDES.left, x2: SIDES.right, y1: y(at), y2: y(at), stroke: "var(--rule)" }));
    picture.append(words(SIDES.left - 6, y(at) + 4, "end", write(at, "time")));
  }
  LINES.forEach((line, at) => {
    const points = measured.filter(({ transaction }) => transaction[`${line}_ns`]);
    const places = points.map(({ load, transaction }) => `${x(load)},${y(transaction[`${line}_ns`])}`);
    picture.append(draw("polyline", { points: places.join(" "), fill: "none", stroke: hue(at), "stroke-width": 2 }));
    for (const place of places) {
      const [cx, cy] = place.split(",");
      picture.append(draw("circle", { cx, cy, r: 3, fill: hue(at) }));
    }
  });
  const legend = make("div", { className: "keys" });
  LINES.forEach((line, at) => {
    const key = make("i", {});
    key.style.background = hue(at);
    legend.append(make("span", {}, key, line));
  });
  return make("figure", {}, make("h2", { textContent: said }), legend, picture);
};

const cell = (words, className = "") => make("td", { textContent: words, className });
const row = (target, { load, holds, client_ran_out: ran, transaction }) => {
  const number = (name, unit) => cell(transaction ? write(transaction[name], unit) : "–", "number");
  const told = ran ? "the client ran out" : holds ? "hold" : "break";
  return make("tr", {}, cell(target), cell(write(load, "count"), "number"), cell(told),
    number("throughput_per_s", "count"), number("p50_ns", "time"), number("p95_ns", "time"), number("p99_ns", "time"));
};

let shown = "";
const show = (search) => {
  element("now").hidden = search === null;
  const text = JSON.stringify(search);
  if (search === null || shown === text) return;
  shown = text;
  const { scenario, goes_on: goesOn, is_ending: isEnding, document: found } = search;
  element("title").textContent = `${scenario}: ${goesOn ? (isEnding ? "ending" : "searching") : "ended"}`;
  element("stop").hidden = !goesOn;
  element("stop").textContent = isEnding ? "Stop at once" : "Stop";
  element("report").hidden = !found;
  element("report").href = `${base}capacities/${search.name}/report.html`;
  element("failure").hidden = !search.failure;
  element("failure").textContent = [search.failure, search.hint].filter(Boolean).join(": ");
  element("said").hidden = !goesOn || !search.said.length;
  element("said").textContent = search.said.join("\n");
  const targets = found?.targets ?? [];
  element("answers").replaceChildren(...(found?.answers ?? []).map((line) => make("p", { className: "headline", textContent: line })));
  element("curves").replaceChildren(...targets.map(curve).filter(Boolean));
  const rows = targets.flatMap(({ name, trials }) => trials.map((trial) => row(name, trial)));
  element("trials").hidden = !rows.length;
  element("trials").tBodies[0].replaceChildren(...rows);
};

let timer = null;
const look = async () => {
  clearTimeout(timer);
  let search = null;
  try {
    search = await (await fetch(`${base}capacities/now`)).json();
    show(search);
  } catch {
    // The bar says that the program cannot be reached.
  }
  timer = setTimeout(look, document.hidden || !search?.goes_on ? 3000 : 1000);
};
look();
