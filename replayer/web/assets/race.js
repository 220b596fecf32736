// The race: one lane a target on shared axes, and how sure it is that they differ.

import { forever } from "./asking.js";
import { Chart } from "./chart.js";
import { color, hue, write } from "./scale.js";
import { draw, words } from "./svg.js";

const MOST = 1800; // as many columns as the program keeps
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

// A target's seconds: rings and dots on the axes that all lanes have, its turns, and what is wrong.
class Lane extends Chart {
  constructor(parent, at, name) {
    super(parent, { title: `${name}: p50 and p95, second by second`, height: 150, unit: "time", log: true });
    this.at = at;
    this.heading.hidden = true;
    this.legend.remove();
    this.onpick = (begin, end) => dispatchEvent(new CustomEvent("replayer-explain", { detail: { target: at, begin, end } }));
  }

  names() {
    return FIGURES;
  }

  columns() {
    return FIGURES.map((name) => this.data.lane[name].map((value) => value || null));
  }

  series(which) {
    const stroke = () => hue(this.at);
    return { stroke, paths: () => null, points: { show: true, size: 4, stroke, fill: () => (which ? hue(this.at) : color("paper")) } };
  }

  start(at) {
    return this.data.begins[at];
  }

  range() {
    return this.data.range;
  }

  shade(plot) {
    const { turn, measured } = this.data.lane;
    this.mark(plot, "rule", 0.3, (at) => turn[at] && measured[at], 1);
    this.mark(plot, "rule", 0.8, (at) => turn[at] && !measured[at], 1);
  }

  finish(plot) {
    const { errors, hanging } = this.data.lane;
    this.mark(plot, "bad", 1, (at) => errors[at] || hanging[at], 0.05);
  }

  tell(at) {
    const { errors, hanging } = this.data.lane;
    const times = FIGURES.map((name) => `${name}: ${write(this.data.lane[name][at], "time")}`);
    const wrong = Object.entries({ errors: errors[at], "calls that hang": hanging[at] }).filter(([, count]) => count);
    return [...times, ...wrong.map(([name, count]) => `${count} ${name}`)];
  }
}

// One scale for all lanes, so that heights can be compared.
const common = () => {
  const values = kept.lanes.flatMap((lane) => FIGURES.flatMap((name) => lane[name].filter(Boolean)));
  return values.length ? [Math.min(...values) / 1.5, Math.max(...values) * 1.5] : [1e5, 1e7];
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

// The places of a target: they stay while what they show is exchanged, so that a zoom and a focus do.
const place = (name, at) => {
  const key = make("i", {});
  key.style.background = hue(at);
  const small = () => make("small", { className: "faint" });
  const [mount, transaction, standings] = [small(), small(), make("div", { className: "standings" })];
  const head = make("div", { className: "who" }, key, make("strong", { textContent: name }), mount, transaction);
  const article = make("article", { className: "lane" }, head);
  $("lanes").append(article);
  const chart = new Lane(article, at, name);
  article.append(standings);
  return { chart, mount, transaction, standings };
};
let places = [];

const show = (found) => {
  const range = common();
  const x = ratioScale(found.figures);
  found.targets.forEach((name, at) => {
    const { chart, mount, transaction, standings } = places[at];
    mount.textContent = found.mounts[at] ?? "";
    transaction.textContent = found.transaction;
    const compared = found.figures.map((figure) => standing(figure, name, at, x, found.is_over)).filter(Boolean).slice(0, 4);
    standings.replaceChildren(...(compared.length ? compared : alone(found.own[at])));
    chart.draw({ times: kept.end, begins: kept.begin, lane: kept.lanes[at], range });
  });
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
    places.forEach(({ chart }) => chart.remove());
    places = [];
    $("lanes").replaceChildren();
    found = await ask();
  }
  $("empty").hidden = found.run !== null;
  $("race").hidden = found.run === null;
  if (found.run === null || JSON.stringify(found) === drawn) return;
  take(found);
  drawn = JSON.stringify(found);
  $("standing").textContent = sentence(found);
  if (!places.length) places = found.targets.map(place);
  show(found);
};

forever(look);
