// Charts over time, drawn by uPlot. All of them show the same seconds: dragging zooms, so do + and -.

import { color, dash, hue, logMarks, marks, write, writeTime } from "./scale.js";

const { uPlot } = window;
const FONT = "11px system-ui, sans-serif";
const ZOOM = 1.5; // chosen: ten presses from half an hour to half a minute
const HINT = "Drag or + and - zoom, Escape shows all, arrow keys go from second to second, Enter explains one";
const all = [];
let zoom = null;
let number = 0;
const zoomTo = (range) => {
  zoom = range;
  for (const chart of all) chart.redraw();
};

export class Chart {
  constructor(parent, { title, height, wide = false, unit, log = false }) {
    const { make } = window.replayer;
    Object.assign(this, { unit, log, height, data: null, plot: null, listed: null, isDragged: false });
    this.heading = make("h2", { textContent: title, id: `chart-${(number += 1)}` });
    this.legend = make("div", { className: "keys" });
    this.place = make("div", { className: "plot", tabIndex: 0, title: HINT });
    this.place.setAttribute("role", "group");
    this.place.setAttribute("aria-labelledby", this.heading.id);
    this.tip = make("div", { className: "tip", hidden: true });
    this.tip.setAttribute("role", "status");
    this.element = make("figure", { className: wide ? "wide" : "" }, this.heading, this.legend, this.place, this.tip);
    parent.append(this.element);
    this.place.addEventListener("keydown", (event) => this.press(event));
    this.place.addEventListener("blur", () => this.leave());
    new ResizeObserver(() => this.redraw()).observe(this.place);
    addEventListener("replayer-theme", () => this.redraw());
    all.push(this);
  }

  draw(data) {
    this.data = data;
    this.redraw();
  }

  redraw() {
    if (!this.data?.times.length || !this.place.clientWidth) return;
    const names = this.names();
    if (names.join("\n") !== this.listed) this.begin(names);
    const size = { width: this.place.clientWidth, height: this.height };
    if (this.plot.width !== size.width) this.plot.setSize(size);
    const { times } = this.data;
    this.plot.setData([times, ...this.columns()], false);
    const [min, max] = zoom ?? [this.start(0), times.at(-1)];
    this.plot.setScale("x", { min, max });
  }

  begin(names) {
    this.plot?.destroy();
    this.listed = names.join("\n");
    this.plot = new uPlot(this.options(names), [[], ...names.map(() => [])], this.place);
    this.plot.over.addEventListener("mousedown", () => (this.isDragged = false));
    this.plot.over.addEventListener("click", ({ offsetX }) => this.isDragged || this.pick(this.plot.posToIdx(offsetX)));
    this.plot.over.addEventListener("pointerleave", () => this.leave());
  }

  options(names) {
    const axis = { stroke: () => color("soft"), font: FONT, ticks: { show: false }, filter: (_, splits) => splits };
    const across = {
      ...axis, size: 24, grid: { show: false },
      splits: (_plot, _axis, min, max) => marks(min, max, Math.max(Math.floor(this.place.clientWidth / 80), 2)),
      values: (_, splits) => splits.map((at) => writeTime(at, splits.length > 1 ? splits[1] - splits[0] : 1)),
    };
    const upwards = {
      ...axis, size: 62, grid: { stroke: () => color("rule"), width: 1 },
      splits: (_plot, _axis, min, max) => (this.log ? logMarks(min, max) : marks(min, max, 4)),
      values: (_, splits) => splits.map((at) => write(at, this.unit)),
    };
    return {
      width: this.place.clientWidth, height: this.height, padding: [8, 10, 0, 0], legend: { show: false },
      scales: { x: { time: false }, y: { distr: this.log ? 3 : 1, range: (_, low, high) => this.range(low, high) } },
      axes: [across, upwards],
      series: [{}, ...names.map((_, at) => this.series(at))],
      cursor: { y: false, points: { size: 5 }, drag: { setScale: false, click: () => {} }, bind: { dblclick: () => () => zoomTo(null) } },
      hooks: {
        setCursor: [(plot) => this.point(plot.cursor)], setSelect: [(plot) => this.select(plot)],
        drawClear: [(plot) => this.shade(plot)], draw: [(plot) => this.finish(plot)],
      },
    };
  }

  // When the interval began that ends at a column.
  start(at) {
    const { times } = this.data;
    if (at) return times[at - 1];
    const step = times.length > 1 ? (times.at(-1) - times[0]) / (times.length - 1) : 1;
    return Math.max(times[0] - step, 0);
  }

  shade(plot) {
    this.mark(plot, "rule", 0.45, (at) => !this.data.measured[at], 1);
  }

  // Colour the seconds of which something is true, from below up to a share of the height.
  mark({ ctx, bbox, valToPos }, name, alpha, isSo, share) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = color(name);
    ctx.globalAlpha = alpha;
    const tall = bbox.height * share;
    this.data.times.forEach((time, at) => {
      if (!isSo(at)) return;
      const [from, to] = [this.start(at), time].map((second) => valToPos(second, "x", true));
      ctx.fillRect(from, bbox.top + bbox.height - tall, Math.max(to - from, 1), tall);
    });
    ctx.restore();
  }

  select({ select, posToVal }) {
    this.isDragged = select.width > 0;
    if (this.isDragged) zoomTo([posToVal(select.left, "x"), posToVal(select.left + select.width, "x")]);
    this.plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  press(event) {
    const { times } = this.data ?? { times: [] };
    if (!this.plot || !times.length || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.plot.cursor.idx ?? times.length - 1;
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: times.length - 1 };
    const [low, high] = zoom ?? [this.start(0), times.at(-1)];
    const scales = { "+": 1 / ZOOM, "=": 1 / ZOOM, "-": ZOOM };
    if (event.key in steps) this.go(Math.min(Math.max(steps[event.key], 0), times.length - 1));
    else if (event.key in scales) {
      const width = (high - low) * scales[event.key];
      const from = Math.max(times[at] - width / 2, this.start(0));
      zoomTo(width >= times.at(-1) - this.start(0) ? null : [from, from + width]);
    } else if (event.key === "Escape") zoomTo(null);
    else if (event.key === "Enter") this.pick(at);
    else return;
    event.preventDefault();
  }

  go(at) {
    const { times } = this.data;
    if (zoom && (times[at] < zoom[0] || times[at] > zoom[1])) {
      const shift = times[at] < zoom[0] ? times[at] - zoom[0] : times[at] - zoom[1];
      zoomTo(zoom.map((second) => second + shift));
    }
    this.plot.setCursor({ left: this.plot.valToPos(times[at], "x"), top: this.height / 3 });
  }

  pick(at) {
    if (this.onpick && this.data?.times.length) this.onpick(this.start(at), this.data.times[at]);
  }

  point({ idx, left, top }) {
    if (idx === null || idx === undefined || left < 0 || !(idx in this.data.times)) return this.leave();
    const { make } = window.replayer;
    const lines = [writeTime(this.data.times[idx], 0.1), ...this.tell(idx, top)];
    this.tip.replaceChildren(...lines.map((text) => make("div", { textContent: text })));
    this.tip.hidden = false;
    const over = this.plot.over;
    const x = over.offsetLeft + left + (left > over.clientWidth / 2 ? -this.tip.offsetWidth - 14 : 14);
    this.tip.style.left = `${Math.max(x, 0)}px`;
    this.tip.style.top = `${this.place.offsetTop + 12}px`;
  }

  leave() {
    this.tip.hidden = true;
  }

  finish() {}

  remove() {
    this.plot?.destroy();
    this.element.remove();
    all.splice(all.indexOf(this), 1);
  }
}

// The places of values that have none beside them: no line shows these.
const alone = ({ data }, line) => {
  const values = data[line];
  const isThere = (at) => (values[at] ?? null) !== null;
  return values.flatMap((_, at) => (isThere(at) && !isThere(at - 1) && !isThere(at + 1) ? [at] : []));
};

// One value a second and line, gaps where there is none.
export class Lines extends Chart {
  constructor(...rest) {
    super(...rest);
    this.hidden = new Set();
  }

  names() {
    return this.data.lines.map(({ name }) => name);
  }

  columns() {
    return this.data.lines.map(({ values }) => (this.log ? values.map((value) => value || null) : values));
  }

  series(at) {
    const stroke = () => hue(at);
    return { stroke, width: 1.6, dash: dash(at), show: !this.hidden.has(this.names()[at]), points: { stroke, fill: stroke, size: 4, show: () => false, filter: alone } };
  }

  begin(names) {
    super.begin(names);
    this.legend.replaceChildren(...names.map((name, at) => this.entry(name, at)));
  }

  entry(name, at) {
    const { make } = window.replayer;
    const mark = make("i", {});
    mark.style.background = hue(at);
    if (dash(at).length) mark.style.background = `repeating-linear-gradient(90deg, ${hue(at)} 0 4px, transparent 4px 7px)`;
    const button = make("button", { type: "button" }, mark, name);
    const show = () => button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
    button.onclick = () => {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      show();
      this.plot.setSeries(at + 1, { show: !this.hidden.has(name) });
    };
    show();
    return button;
  }

  range(low, high) {
    if (low === null || low === undefined) [low, high] = this.log ? [1e3, 1e6] : [0, 1];
    const room = high / low < 3 ? 2.5 : 1.3; // or no mark of the axis lies in it
    return this.log ? [low / room, high * room] : [0, high * 1.08 || 1];
  }

  // Say why there is no line.
  finish({ ctx, bbox }) {
    const { none, lines } = this.data;
    if (!none || lines.some(({ name, values }) => !this.hidden.has(name) && values.some((value) => value !== null))) return;
    ctx.save();
    ctx.fillStyle = color("soft");
    ctx.textAlign = "center";
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillText(none, bbox.left + bbox.width / 2, bbox.top + bbox.height / 2, bbox.width - 16);
    ctx.restore();
  }

  tell(at) {
    const shown = this.data.lines.filter(({ name }) => !this.hidden.has(name));
    return shown.map(({ name, values }) => `${name}: ${write(values[at], this.unit)}`);
  }
}

// Time across, latency upwards (each step a quarter more), darker where more calls ended.
export class Heat extends Chart {
  constructor(parent, rest) {
    super(parent, { ...rest, unit: "time", log: true });
  }

  names() {
    return ["calls"];
  }

  columns() {
    return [this.data.times.map(() => null)];
  }

  series() {
    return { show: true };
  }

  value(bin) {
    return 10 ** (bin / this.data.perDecade);
  }

  range() {
    const bins = this.data.heat.flatMap((column) => column.map(([bin]) => bin));
    const [low, high] = bins.length ? [Math.min(...bins), Math.max(...bins) + 1] : [30, 60];
    return [this.value(low - 1), this.value(high + 1)];
  }

  finish({ ctx, bbox, valToPos }) {
    const rgb = window.replayer.theme() === "dark" ? "86, 180, 233" : "0, 82, 140";
    const most = Math.max(1, ...this.data.heat.flatMap((column) => column.map(([, count]) => count)));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    this.data.heat.forEach((column, at) => {
      const left = valToPos(this.start(at), "x", true);
      const width = Math.max(valToPos(this.data.times[at], "x", true) - left, 1);
      for (const [bin, count] of column) {
        // By the logarithm: one slow call among ten thousand must be seen.
        const share = 0.18 + 0.82 * (Math.log(1 + count) / Math.log(1 + most));
        ctx.fillStyle = `rgba(${rgb}, ${share.toFixed(3)})`;
        const top = valToPos(this.value(bin + 1), "y", true);
        ctx.fillRect(left, top, width, valToPos(this.value(bin), "y", true) - top);
      }
    });
    ctx.restore();
  }

  tell(at, top) {
    const column = this.data.heat[at] ?? [];
    const value = this.plot.posToVal(top, "y");
    const bin = Math.floor(Math.log10(value) * this.data.perDecade);
    const count = column.find(([found]) => found === bin)?.[1] ?? 0;
    return [`${write(this.value(bin), "time")} to ${write(this.value(bin + 1), "time")}`, `${count.toLocaleString("en")} ended`];
  }
}
