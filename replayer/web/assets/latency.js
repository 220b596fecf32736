// Charts over time: asks for what is new each second, and draws it.

import { forever } from "./asking.js";
import { Heat, Lines } from "./chart.js";

const MOST = 1800; // as many columns as the program keeps
const { base, make } = window.replayer;
const $ = (id) => document.getElementById(id);
const charts = $("charts");

const latency = new Lines(charts, { title: "Latency over time", unit: "time", log: true, height: 300, wide: true });
const heat = new Heat(charts, { title: "Latency heat map", height: 260, wide: true });
const throughput = new Lines(charts, { title: "Transactions a second", unit: "count", height: 180 });
const bytes = new Lines(charts, { title: "Bytes a second", unit: "bytes", height: 180 });
const users = new Lines(charts, { title: "Users", unit: "count", height: 180 });
const troubles = new Lines(charts, { title: "Errors, and calls that hang", unit: "count", height: 180 });

// A click at a second says what took the time in it; so does its number.
const clear = () => $("moment").replaceChildren();
const explain = async (begin, end) => {
  const target = Math.max($("target").selectedIndex, 0);
  const name = $("target").value;
  const answer = await fetch(`${base}explain?${new URLSearchParams({ target, begin, end })}`);
  const { title, lines } = answer.ok ? await answer.json() : { title: "", lines: ["the run cannot be read"] };
  if (name !== $("target").value) return; // another target was chosen meanwhile
  $("moment").replaceChildren(make("dt", { textContent: `${name}, ${title}` }), ...lines.map((text) => make("dd", { textContent: text })));
};
let explaining = Promise.resolve();
const explainNext = (begin, end) => (explaining = explaining.then(() => explain(begin, end)).catch((error) => console.warn(error)));
latency.onpick = heat.onpick = explainNext;
addEventListener("replayer-explain", ({ detail: { target, begin, end } }) => {
  if ($("target").selectedIndex !== target) {
    $("target").selectedIndex = target;
    next();
  }
  explainNext(begin, end);
});
$("second").onchange = () => $("second").value && explainNext(Number($("second").value), Number($("second").value) + 1);

let kept = null;
let asked = "";

const fresh = (run) => ({
  run, last: -1, times: [], users: [], measured: [], hanging: [], errors: [], bytes: [], heat: [], lines: {}, throughput: {},
});

const subject = () =>
  new URLSearchParams({ target: $("target").selectedIndex < 0 ? 0 : $("target").selectedIndex, transaction: $("transaction").value, op: $("op").value });

// Append what is new; a line that begins late has gaps before. A value of several seconds stands for each of them.
const append = (lines, name, found, before) => {
  const line = (lines[name] ??= Array(before).fill(null));
  for (const each of found) {
    const [value, seconds] = Array.isArray(each) ? each : [each, 1];
    line.push(value);
    line.fill(value, Math.max(line.length - seconds, 0));
  }
};
const trim = (values) => values.splice(0, Math.max(values.length - MOST, 0));

const take = (found) => {
  const before = kept.times.length;
  const { columns } = found;
  kept.times.push(...columns.t);
  for (const name of ["users", "measured", "hanging"]) kept[name].push(...columns[name]);
  for (const name of ["errors", "bytes", "heat"]) kept[name].push(...found[name]);
  for (const [op, figures] of Object.entries(found.lines)) {
    kept.lines[op] ??= {};
    for (const [name, values] of Object.entries(figures)) append(kept.lines[op], name, values, before);
  }
  for (const [name, values] of Object.entries(found.throughput)) append(kept.throughput, name, values, before);
  kept.last = found.last;
  for (const name of ["times", "users", "measured", "hanging", "errors", "bytes", "heat"]) trim(kept[name]);
  for (const figures of Object.values(kept.lines)) Object.values(figures).forEach(trim);
  Object.values(kept.throughput).forEach(trim);
};

const fill = (select, names, chosen) => {
  const listed = [...select.options].map(({ value }) => value).join("\n");
  if (listed !== names.join("\n"))
    select.replaceChildren(...names.map((name) => make("option", { value: name, textContent: name })));
  if (chosen !== undefined && names.includes(chosen)) select.value = chosen;
};

const offer = (found) => {
  const at = Math.max($("target").selectedIndex, 0);
  fill($("target"), found.subjects.map(({ name }) => name));
  $("target").selectedIndex = Math.min(at, found.subjects.length - 1);
  fill($("transaction"), found.subjects[found.target]?.transactions ?? [], found.transaction);
  fill($("op"), Object.keys(found.lines), found.op);
};

const draw = () => {
  const common = { times: kept.times, measured: kept.measured };
  const figure = $("figure").value;
  const label = $("figure").selectedOptions[0].textContent;
  latency.heading.textContent = `${label} over time: ${$("transaction").value} and its calls`;
  heat.heading.textContent = `Heat map: ${$("op").value} of ${$("transaction").value}`;
  const none = `too few calls completed in one turn for ${label}; p50 and max need only one`;
  latency.draw({ ...common, none, lines: Object.entries(kept.lines).map(([name, figures]) => ({ name, values: figures[figure] })) });
  heat.draw({ ...common, heat: kept.heat, perDecade: kept.perDecade });
  throughput.draw({ ...common, lines: Object.entries(kept.throughput).map(([name, values]) => ({ name, values })) });
  bytes.draw({ ...common, lines: [{ name: "read and written", values: kept.bytes }] });
  users.draw({ ...common, lines: [{ name: "users", values: kept.users }] });
  troubles.draw({ ...common, lines: [{ name: "hanging", values: kept.hanging }, { name: "errors", values: kept.errors }] });
};

const ask = async (words, after) => {
  const answer = await fetch(`${base}series?${words}&after=${after}`);
  return answer.json();
};

const look = async () => {
  const words = String(subject());
  if (words !== asked) kept = null;
  let found = await ask(words, kept ? kept.last : "");
  if (kept && kept.run !== found.run) {
    kept = null; // another run has begun
    clear();
    found = await ask(words, "");
  }
  $("details").hidden = found.run === null;
  if (found.run === null) return;
  kept ??= fresh(found.run);
  kept.perDecade = found.bins_per_decade;
  take(found);
  offer(found);
  asked = String(subject());
  draw();
};

// One after the other: an answer belongs to what was asked for.
let looking = Promise.resolve();
const next = () => (looking = looking.then(look).catch((error) => console.warn(error)));

for (const id of ["target", "transaction", "op"]) $(id).onchange = next;
$("target").addEventListener("change", clear);
$("figure").onchange = () => kept && draw();
forever(next);
