// The race: one lane a target on shared axes, and how sure it is that they differ.

import { hue, logMarks, marks, write, writeTime } from "./scale.js";
import { forever } from "./asking.js";

const MOST = 1800; // as many columns as the program keeps
const WIDTH = 720;
const HEIGHT = 150;
const AREA = { left: 58, right: 712, top: 8, bottom: 126 };
const RATIO = { width: 300, height: 54, left: 8, right: 292, top: 6, bottom: 36 };
const BEFORE = 12; // so many earlier intervals are drawn above the last one
const FIGURES = ["p50", "p95"];
const { base, make } = window.replayer;
const $ = (id) => document.getElementById(id);

const draw = (name, properties, ...children) => {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) found.setAttribute(key, value);
  found.append(...children.filter(Boolean));
  return found;
};
const words = (x, y, anchor, text) => draw("text", { x, y, "text-anchor": anchor }, text);
const tip = (text, ...children) => draw("g", { "data-tip": text }, ...children);

let kept = null;
const take = (found) => {
  if (kept?.run !== found.run) kept = { run: found.run, last: -1, t: [], lanes: found.targets.map(() => ({})) };
  kept.last = found.last;
  kept.t.push(...found.t);
  kept.t.splice(0, Math.max(kept.t.length - MOST, 0));
  found.lanes.forEach((lane, at) => {
    for (const [name, values] of Object.entries(lane))
      if (Array.isArray(values)) {
        const line = (kept.lanes[at][name] ??= []);
        // A percentile of several seconds stands at the last of them.
        line.push(...values.map((value) => (Array.isArray(value) ? value[0] : value)));
        line.splice(0, Math.max(line.length - MOST, 0));
      } else kept.lanes[at][name] = values;
  });
};

// Of all lanes together, so that heights can be compared.
const scales = () => {
  const values = kept.lanes.flatMap((lane) => FIGURES.flatMap((name) => (lane[name] ?? []).filter(Boolean)));
  const [low, high] = values.length ? [Math.min(...values) / 1.5, Math.max(...values) * 1.5] : [1e5, 1e7];
  const [from, to] = [0, Math.max(kept.t.at(-1) ?? 1, 1)];
  const { left, right, top, bottom } = AREA;
  return {
    low, high, from, to,
    x: (seconds) => left + ((seconds - from) / (to - from)) * (right - left),
    y: (time) => bottom - (Math.log(time / low) / Math.log(high / low)) * (bottom - top),
  };
};

const grid = ({ low, high, from, to, x, y }) => [
  ...logMarks(low, high).map((at) => draw("line", { class: "grid", x1: AREA.left, x2: AREA.right, y1: y(at), y2: y(at) })),
  ...logMarks(low, high).map((at) => words(AREA.left - 6, y(at) + 4, "end", write(at, "time"))),
  ...marks(from, to, 8).map((at) => words(x(at), AREA.bottom + 16, "middle", writeTime(at))),
];

// What a lane has of each second: its turn as a stripe, dots, and what is wrong.
const seconds = (lane, at, { x, y }) => {
  const found = [];
  kept.t.forEach((end, number) => {
    const begin = number ? kept.t[number - 1] : 0;
    if (lane.turn?.[number])
      found.push(draw("rect", { x: x(begin), width: Math.max(x(end) - x(begin), 0.5), y: AREA.top, height: AREA.bottom - AREA.top, class: lane.measured[number] ? "turn" : "turn warming" }));
    if (lane.errors?.[number] || lane.hanging?.[number])
      found.push(draw("rect", { x: x(begin), width: Math.max(x(end) - x(begin), 2), y: AREA.bottom - 6, height: 6, class: "wrong" }));
  });
  FIGURES.forEach((name, which) =>
    kept.t.forEach((end, number) => {
      const value = lane[name]?.[number];
      if (value) found.push(draw("circle", { cx: x(end), cy: y(value), r: 1.8, fill: which ? hue(at) : "none", stroke: hue(at) }));
    }),
  );
  return found;
};

// Ratios to the best target: 1 stands in the same place in all lanes.
const ratioScale = (figures) => {
  const bounds = figures.flatMap(({ standings }) => standings.flatMap(({ low, high, before }) => [low, high, ...before.slice(-BEFORE).flatMap(([, one, two]) => [one, two])]));
  const reach = Math.max(1.25, ...bounds.filter(Boolean).map((ratio) => Math.max(ratio, 1 / ratio)));
  const { left, right } = RATIO;
  return (ratio) => left + ((Math.log(ratio) / Math.log(reach) + 1) / 2) * (right - left);
};

const ratioBar = ({ ratio, low, high, before, claim }, at, x) => {
  const { width, height, top, bottom } = RATIO;
  const found = [draw("line", { class: "axis", x1: x(1), x2: x(1), y1: top, y2: bottom }), words(x(1), height - 4, "middle", "× 1")];
  const earlier = before.slice(-BEFORE);
  earlier.forEach(([, one, two], number) => {
    const height = top + ((bottom - top) * (number + 1)) / (earlier.length + 1);
    found.push(draw("line", { x1: x(one), x2: x(two), y1: height, y2: height, stroke: hue(at), opacity: 0.25 }));
  });
  if (low && high) {
    found.push(draw("line", { x1: x(low), x2: x(high), y1: bottom, y2: bottom, stroke: hue(at), "stroke-width": 3 }));
    found.push(draw("circle", { cx: x(ratio), cy: bottom, r: 4, fill: hue(at) }));
  } else if (claim === "best") found.push(draw("circle", { cx: x(1), cy: bottom, r: 4, fill: hue(at) }));
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "ratio", role: "img", "aria-label": claim }, ...found);
};

const times = (ratio) => `× ${Number(ratio.toPrecision(3))}`;
const said = ({ claim, ratio, low, high }) => (low ? `${times(ratio)} (${times(low).slice(2)} to ${times(high).slice(2)})` : claim === "best" ? "" : claim);

const standing = ({ subject, figure, standings }, name, at, x) => {
  const row = standings.find(({ target }) => target === name);
  if (!row) return null;
  const badge = make("span", { className: `badge ${row.claim === "best" ? "pass" : row.claim === "differs" ? "fail" : ""}`, textContent: row.claim });
  return make("div", { className: "standing" },
    make("strong", { textContent: `${subject === "all transactions" ? "" : `${subject} `}${figure} ${write(row.value_ns, "time")}` }), badge, ratioBar(row, at, x), make("small", { className: "faint", textContent: said(row) }));
};

const lane = (found, at, scale, x) => {
  const own = kept.lanes[at];
  const name = found.targets[at];
  const shown = found.figures.slice(0, 4).map((figure) => standing(figure, name, at, x));
  const head = make("div", { className: "who" }, make("i", {}), make("strong", { textContent: name }), make("small", { className: "faint", textContent: found.mounts[at] ?? "" }));
  head.firstChild.style.background = hue(at);
  const label = `${name}: p50 and p95 of ${own.transaction ?? "its transactions"}, second by second`;
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "lane", role: "img", "aria-label": label }, ...seconds(own, at, scale), ...grid(scale));
  return make("article", { className: "lane" }, head, picture, make("div", { className: "standings" }, ...shown));
};

// What the race is about, in a sentence.
const sentence = ({ targets, figures, rounds }) => {
  if (targets.length < 2) return rounds ? `Round ${rounds[0]} of ${rounds[1]}` : "";
  const decided = figures.map(({ subject, figure, standings: [best, ...others] }) => {
    const what = subject === "all transactions" ? figure : `${subject} ${figure}`;
    const sure = others.every(({ claim }) => claim === "differs");
    return sure && others.length ? `${what}: ${best.target} is best` : `${what}: no difference shown yet`;
  });
  return [...decided.slice(0, 2), rounds ? `round ${rounds[0]} of ${rounds[1]}` : "it is laid out"].join(" · ");
};

const look = async () => {
  const answer = await fetch(`${base}race?after=${kept ? kept.last : -1}`);
  let found = await answer.json();
  if (kept && found.run !== null && found.run !== kept.run) {
    kept = null; // another run has begun
    found = await (await fetch(`${base}race?after=-1`)).json();
  }
  $("empty").hidden = found.run !== null;
  $("race").hidden = found.run === null;
  if (found.run === null) return;
  take(found);
  const scale = scales();
  const x = ratioScale(found.figures);
  $("standing").textContent = sentence(found);
  $("lanes").replaceChildren(...found.targets.map((_, at) => lane(found, at, scale, x)));
};

forever(look);
