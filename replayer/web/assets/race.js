// The race: one lane a target on shared axes, and how sure it is that they differ.

import { forever } from "./asking.js";
import { hue, logMarks, marks, write, writeTime } from "./scale.js";
import { draw, words } from "./svg.js";

const MOST = 1800; // as many columns as the program keeps
const WIDTH = 720;
const HEIGHT = 150;
const AREA = { left: 58, right: 712, top: 8, bottom: 126 };
const RATIO = { width: 300, height: 54, left: 8, right: 292, top: 6, bottom: 36 };
const FIGURES = ["p50", "p95"];
const { base, make } = window.replayer;
const $ = (id) => document.getElementById(id);

const LISTS = ["errors", "turn", "measured", "hanging", ...FIGURES];
let kept = null;
const fresh = ({ run, transaction, targets }) => ({
  run, transaction, last: -1, begin: [], end: [], lanes: targets.map(() => Object.fromEntries(LISTS.map((name) => [name, []]))),
});
const add = (line, values) => {
  line.push(...values);
  line.splice(0, Math.max(line.length - MOST, 0));
};
const take = (found) => {
  kept ??= fresh(found);
  kept.last = found.last;
  for (const name of ["begin", "end"]) add(kept[name], found[name]);
  found.lanes.forEach((lane, at) => {
    // A percentile of several seconds stands at the last of them.
    for (const name of LISTS) add(kept.lanes[at][name], lane[name].map((value) => (Array.isArray(value) ? value[0] : value)));
  });
};

// Of all lanes together, so that heights can be compared.
const scales = () => {
  const values = kept.lanes.flatMap((lane) => FIGURES.flatMap((name) => lane[name].filter(Boolean)));
  const [low, high] = values.length ? [Math.min(...values) / 1.5, Math.max(...values) * 1.5] : [1e5, 1e7];
  const from = kept.begin[0] ?? 0;
  const to = Math.max(kept.end.at(-1) ?? 1, from + 1);
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

// What a lane has of each second: its turn, dots, and what is wrong.
const seconds = (lane, at, { x, y }) => {
  const found = [];
  kept.end.forEach((end, number) => {
    const begin = kept.begin[number];
    if (lane.turn[number])
      found.push(draw("rect", { x: x(begin), width: Math.max(x(end) - x(begin), 0.5), y: AREA.top, height: AREA.bottom - AREA.top, class: lane.measured[number] ? "turn" : "turn warming" }));
    if (lane.errors[number] || lane.hanging[number])
      found.push(draw("rect", { x: x(begin), width: Math.max(x(end) - x(begin), 2), y: AREA.bottom - 6, height: 6, class: "wrong" }));
  });
  FIGURES.forEach((name, which) =>
    kept.end.forEach((end, number) => {
      const value = lane[name][number];
      if (value) found.push(draw("circle", { cx: x(end), cy: y(value), r: 1.8, fill: which ? hue(at) : "none", stroke: hue(at) }));
    }),
  );
  return found;
};

// Ratios to the best target: 1 stands in the same place in all lanes.
const ratioScale = (figures) => {
  const bounds = figures.flatMap(({ standings }) => standings.flatMap(({ low, high, before }) => [low, high, ...before.flatMap(([, one, two]) => [one, two])]));
  const reach = Math.max(1.25, ...bounds.filter(Boolean).map((ratio) => Math.max(ratio, 1 / ratio)));
  const { left, right } = RATIO;
  return (ratio) => left + ((Math.log(ratio) / Math.log(reach) + 1) / 2) * (right - left);
};

const ratioBar = ({ ratio, low, high, before, claim }, at, x) => {
  const { width, height, top, bottom } = RATIO;
  const found = [draw("line", { class: "axis", x1: x(1), x2: x(1), y1: top, y2: bottom }), words(x(1), height - 4, "middle", "× 1")];
  before.forEach(([, one, two], number) => {
    const height = top + ((bottom - top) * (number + 1)) / (before.length + 1);
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
const soFar = (claim, isOver) => (isOver || !/^(best|differs)/.test(claim) ? claim : `${claim} so far`);
const figureOf = ({ subject, figure }) => (subject === "all transactions" ? figure : `${subject} ${figure}`);

const standing = (figure, name, at, x, isOver) => {
  const row = figure.standings.find(({ target }) => target === name);
  if (!row) return null;
  const kind = row.claim === "best" ? "pass" : row.claim.startsWith("differs") ? "fail" : "";
  const badge = make("span", { className: `badge ${kind}`, textContent: soFar(row.claim, isOver) });
  return make("div", { className: "standing" },
    make("strong", { textContent: `${figureOf(figure)} ${write(row.value_ns, "time")}` }), badge, ratioBar(row, at, x), make("small", { className: "faint", textContent: said(row) }));
};

// A target that is compared with none, or not yet, has its own figures.
const alone = ({ transaction, ...values } = {}) =>
  FIGURES.filter((name) => values[`${name}_ns`]).map((name) =>
    make("div", { className: "standing" }, make("strong", { textContent: `${transaction} ${name} ${write(values[`${name}_ns`], "time")}` })));

const lane = (found, at, scale, x) => {
  const name = found.targets[at];
  const compared = found.figures.map((figure) => standing(figure, name, at, x, found.is_over)).filter(Boolean).slice(0, 4);
  const shown = compared.length ? compared : alone(found.own[at]);
  const key = make("i", {});
  key.style.background = hue(at);
  const small = (text) => make("small", { className: "faint", textContent: text });
  const head = make("div", { className: "who" }, key, make("strong", { textContent: name }), small(found.mounts[at] ?? ""), small(found.transaction));
  const label = `${name}: p50 and p95 of ${found.transaction || "its transactions"}, second by second`;
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "lane", role: "img", "aria-label": label }, ...seconds(kept.lanes[at], at, scale), ...grid(scale));
  return make("article", { className: "lane" }, head, picture, make("div", { className: "standings" }, ...shown));
};

// What the race is about, in a sentence.
const sentence = ({ figures, rounds, outcome, is_over: isOver }) => {
  const told = figures.slice(0, 2).map((figure) => {
    const [best, ...others] = figure.standings;
    const differs = others.length && others.every(({ claim }) => claim.startsWith("differs"));
    const so = isOver ? "" : " so far";
    return differs ? `${figureOf(figure)}: ${best.target} is best${so}` : `${figureOf(figure)}: no difference shown${so}`;
  });
  const state = outcome ?? (rounds ? `round ${rounds[0]} of ${rounds[1]}` : "preparing");
  return [...told, state].join(" · ");
};

const ask = async () => (await fetch(`${base}race?after=${kept ? kept.last : -1}`)).json();
let drawn = "";
const look = async () => {
  let found = await ask();
  if (kept && (found.run !== kept.run || found.transaction !== kept.transaction)) {
    kept = null; // another run has begun, or another transaction is the commonest
    found = await ask();
  }
  $("empty").hidden = found.run !== null;
  $("race").hidden = found.run === null;
  if (found.run === null || JSON.stringify(found) === drawn) return;
  take(found);
  drawn = JSON.stringify(found);
  const scale = scales();
  const x = ratioScale(found.figures);
  $("standing").textContent = sentence(found);
  $("lanes").replaceChildren(...found.targets.map((_, at) => lane(found, at, scale, x)));
};

forever(look);
