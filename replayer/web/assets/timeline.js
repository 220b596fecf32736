// A trace's timeline: lanes of calls, from the whole to one call; recorded above replayed.

import { color, hue, marks } from "./scale.js";

const LEAST_ROW = 26; // points of a lane; with a replay it has two rows
const MOST_ROW = 72;
const TALL = 320; // what few lanes share
const GAP = 6;
const LEFT = 64;
const BOTTOM = 24;
const ZOOM = 2;
const STEP = 0.25; // of a window, by a key
const LEAST_NS = 1000;
const WAIT_MS = 120; // chosen: the hand has stopped turning the wheel
const CLICK = 4; // points that a pointer may move in a click
const TURN = 400; // chosen: how far a wheel turns for a window of half the length
const { base, make } = window.replayer;
const $ = (id) => document.getElementById(id);
const view = $("view");
const canvas = $("lanes");
const isReplayed = Boolean(view.elements.performance);
const source = view.dataset.run ? { run: view.dataset.run } : { trace: view.dataset.trace };

let shown = null; // what the program answered last
let span = { from: 0, to: 0 }; // what is to be seen; nothing is the whole
let marked = null; // a call

const ask = async (place, more) => {
  const performance = view.elements.performance?.value ?? -1;
  const sent = new URLSearchParams({ ...source, performance, ...more });
  const answer = await (await fetch(`${base}timeline/${place}?${sent}`)).json();
  $("refused").hidden = !answer.message;
  $("refused").textContent = [answer.message, answer.hint].filter(Boolean).join(": ");
  return answer.message ? null : answer;
};

// A time in the unit of the whole, with as many decimals as a step of it needs.
const when = (time, step = 1000) => {
  const [unit, name] = shown.end >= 1e9 ? [1e9, "s"] : [1e6, "ms"];
  const decimals = Math.min(Math.max(Math.ceil(-Math.log10(step / unit) - 1e-9), 0), unit === 1e9 ? 9 : 6);
  return `${(time / unit).toFixed(decimals)} ${name}`;
};
const took = (time) => (time < 0 ? "–" : `${(time / 1000).toLocaleString("en", { maximumFractionDigits: 3 })} µs`);

const kindColour = (kind) => hue(kind);
const rows = isReplayed ? 2 : 1;
const tall = () => Math.min(Math.max(Math.floor(TALL / (shown.lanes.length * rows)), LEAST_ROW), MOST_ROW);
const height = () => tall() * rows + GAP;
const width = () => canvas.clientWidth - LEFT;
const x = (time) => LEFT + ((time - span.from) / (span.to - span.from || 1)) * width();
const timeAt = (place) => span.from + ((place - LEFT) / width()) * (span.to - span.from);

// Blocks, or columns where there are too many: their height is the part of the time in calls.
const drawPart = (pen, part, top) => {
  const row = tall();
  pen.strokeStyle = color("rule");
  pen.strokeRect(LEFT + 0.5, top + 0.5, width() - 1, row - 1);
  for (const [, start, length, kind, failed] of part.blocks ?? []) {
    const [begin, end] = [Math.max(x(start), LEFT), Math.min(x(start + length), LEFT + width())];
    if (end < LEFT || begin > LEFT + width()) continue;
    pen.fillStyle = kindColour(kind);
    pen.fillRect(begin, top + 2, Math.max(end - begin, 1), row - 4);
    if (!failed) continue;
    pen.fillStyle = color("bad");
    pen.fillRect(begin, top + row - 7, Math.max(end - begin, 2), 5);
  }
  const each = (shown.to - shown.from) / (part.share?.length ?? 1);
  part.share?.forEach((share, at) => {
    if (!share && !part.begun[at]) return;
    const [begin, end] = [x(shown.from + at * each), x(shown.from + (at + 1) * each)];
    if (end < LEFT || begin > LEFT + width()) return;
    const high = Math.max((share / 1000) * (row - 4), 1);
    pen.fillStyle = kindColour(part.kind[at]);
    pen.fillRect(Math.max(begin, LEFT), top + row - 2 - high, end - begin + 0.5, high);
  });
};

const drawAxis = (pen, bottom) => {
  pen.fillStyle = color("soft");
  pen.textAlign = "center";
  const found = marks(span.from, span.to, Math.max(Math.floor(width() / 110), 2));
  for (const at of found) pen.fillText(when(at, found[1] - found[0]), Math.max(x(at), LEFT + 14), bottom + 16);
};

// Around the call that was chosen: above as recorded, below as replayed.
const drawMarked = (pen) => {
  const top = marked === null ? -1 : (marked.lane - shown.first) * height();
  if (top < 0 || marked.lane >= shown.first + shown.lanes.length) return;
  pen.save();
  pen.beginPath();
  pen.rect(LEFT - 2, top - 2, width() + 4, height() + 4);
  pen.clip();
  pen.strokeStyle = color("ink");
  pen.lineWidth = 2;
  [marked.recorded, marked.replayed].forEach((pair, part) => {
    if (pair) pen.strokeRect(x(pair[0]) - 1, top + part * tall() + 1, Math.max(x(pair[0] + Math.max(pair[1], 0)) - x(pair[0]), 1) + 2, tall() - 2);
  });
  pen.restore();
};

const redraw = () => {
  if (shown === null) return;
  const ratio = window.devicePixelRatio || 1;
  const bottom = shown.lanes.length * height();
  canvas.style.height = `${bottom + BOTTOM}px`;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round((bottom + BOTTOM) * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  shown.lanes.forEach(({ thread, recorded, replayed }, at) => {
    const top = at * height();
    pen.fillStyle = color("soft");
    pen.textAlign = "left";
    pen.fillText(`thread ${thread}`, 0, top + tall() / 2 + 4);
    if (replayed) pen.fillText("replayed", 0, top + tall() * 1.5 + 4);
    drawPart(pen, recorded, top);
    if (replayed) drawPart(pen, replayed, top + tall());
  });
  drawAxis(pen, bottom);
  drawMarked(pen);
  const step = (span.to - span.from) / 1000;
  $("window").textContent = `${when(span.from, step)} to ${when(span.to, step)} of ${when(shown.end)}`;
};

let asked = 0;
const fetchLanes = async () => {
  const number = ++asked;
  const more = { from: Math.floor(span.from), to: Math.ceil(span.to), columns: Math.max(Math.floor(width()), 1), lane: view.elements.lane.value || 0 };
  const answer = await ask("lanes", more);
  if (answer === null || number !== asked) return;
  shown = answer;
  if (!(span.to > span.from)) span = { from: answer.from, to: answer.to };
  if (answer.threads.length > answer.most && !view.elements.lane.options.length) {
    for (let at = 0; at < answer.threads.length; at += answer.most)
      view.elements.lane.append(make("option", { value: at, textContent: answer.threads[at] }));
    $("more").hidden = false;
  }
  redraw();
};
let timer = null;
const fetchSoon = () => {
  clearTimeout(timer);
  timer = setTimeout(fetchLanes, WAIT_MS);
};

// What is known is stretched at once; what it looks like from near follows.
const show = (from, to) => {
  const length = Math.min(Math.max(to - from, LEAST_NS), shown.end);
  const begin = Math.min(Math.max(from, 0), shown.end - length);
  span = { from: begin, to: begin + length };
  redraw();
  fetchSoon();
};
const zoom = (factor, around = (span.from + span.to) / 2) => show(around - (around - span.from) * factor, around + (span.to - around) * factor);
const move = (share) => show(span.from + (span.to - span.from) * share, span.to + (span.to - span.from) * share);
const KEYS = {
  "0": () => show(0, shown.end),
  "+": () => zoom(1 / ZOOM),
  "=": () => zoom(1 / ZOOM),
  "-": () => zoom(ZOOM),
  ArrowLeft: () => move(-STEP),
  ArrowRight: () => move(STEP),
};
const press = (key) => {
  if (shown === null || !KEYS[key]) return false;
  KEYS[key]();
  return true;
};
const isPlain = (event) => !(event.ctrlKey || event.metaKey || event.altKey);
canvas.addEventListener("keydown", (event) => isPlain(event) && press(event.key) && event.preventDefault());
for (const button of view.querySelectorAll("[data-key]")) button.onclick = () => press(button.dataset.key);
canvas.addEventListener("wheel", (event) => {
  // Over the labels it scrolls the page.
  if (shown === null || event.offsetX < LEFT || !isPlain(event) || !event.deltaY) return;
  event.preventDefault();
  zoom(ZOOM ** (event.deltaY / TURN), timeAt(event.offsetX));
}, { passive: false });

let held = null;
canvas.addEventListener("pointercancel", () => (held = null));
canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  held = { x: event.offsetX, y: event.offsetY, ...span };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (held === null || shown === null || Math.abs(event.offsetX - held.x) < CLICK) return;
  const by = ((held.x - event.offsetX) / width()) * (held.to - held.from);
  show(held.from + by, held.to + by);
});
canvas.addEventListener("pointerup", (event) => {
  const was = held;
  held = null;
  if (was !== null && Math.abs(event.offsetX - was.x) < CLICK) pick(event.offsetX, event.offsetY);
});

// The call under the pointer, or the nearest one in its lane; columns are looked into first.
const pick = async (left, top) => {
  const lane = shown?.lanes[Math.floor(top / height())];
  if (!lane || left < LEFT) return;
  const part = [lane.recorded, lane.replayed][Math.floor((top % height()) / tall())];
  if (!part) return;
  if (!part.blocks) return zoom(1 / (ZOOM * ZOOM * ZOOM), timeAt(left));
  const time = timeAt(left);
  const away = ([, start, length]) => Math.max(start - time, time - start - length, 0);
  const near = part.blocks.reduce((best, block) => (best === null || away(block) < away(best) ? block : best), null);
  if (near) list(await ask("calls", { row: near[0] }));
};

const times = (pair) => (pair ? [when(pair[0]), took(pair[1])] : ["–", "–"]);
const row = (call) => {
  const button = make("button", { type: "button", className: "plain", textContent: "Show" });
  button.setAttribute("aria-label", `show ${call.op} ${call.path} in the timeline`);
  button.onclick = () => {
    marked = call;
    view.elements.lane.value = call.lane - (call.lane % shown.most);
    const [begin, length] = [call.recorded[0], Math.max(call.recorded[1], 0)];
    const room = Math.max(length * 20, LEAST_NS * 20);
    show(begin - room, begin + length + room);
    canvas.scrollIntoView({ block: "nearest" });
  };
  const number = (text) => make("td", { className: "number", textContent: text });
  const cells = [call.op, call.path, call.result].map((text, at) => make("td", { className: at === 1 ? "room" : "", textContent: text }));
  const replayed = isReplayed ? times(call.replayed) : [];
  return make("tr", {}, ...cells, ...[call.thread, ...times(call.recorded), ...replayed].map(number), make("td", {}, button));
};
const list = (answer) => {
  if (answer === null) return;
  const { found, calls } = answer;
  $("calls").hidden = !calls.length;
  $("calls").tBodies[0].replaceChildren(...calls.map(row));
  $("found").textContent = found > calls.length ? `the first ${calls.length} of ${found.toLocaleString("en")}` : `${found.toLocaleString("en")} ${found === 1 ? "call" : "calls"}`;
  if (calls.length === 1) {
    [marked] = calls;
    redraw();
  }
};
$("search").onsubmit = async (event) => {
  event.preventDefault();
  list(await ask("calls", Object.fromEntries(new FormData(event.target))));
};
for (const name of ["performance", "lane"]) view.elements[name]?.addEventListener("change", fetchLanes);

const paint = () => {
  for (const key of document.querySelectorAll("#kinds i"))
    key.style.background = key.dataset.kind === "failed" ? color("bad") : kindColour(Number(key.dataset.kind));
  redraw();
};
addEventListener("replayer-theme", paint);
new ResizeObserver(() => (redraw(), fetchSoon())).observe(canvas.parentElement);
paint();
fetchLanes();
