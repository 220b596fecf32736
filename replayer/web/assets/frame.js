// The frame of a chart: canvas, axes, title, and a tip that follows the pointer.

import { color, writeTime, marks } from "./scale.js";

const LEFT = 62;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;

export class Frame {
  constructor(parent, { title, height, wide }) {
    const { make } = window.replayer;
    this.element = make("figure", { className: wide ? "wide" : "" });
    this.heading = make("h2", { textContent: title });
    this.legend = make("div", { className: "keys" });
    this.canvas = make("canvas", {});
    this.heading.id = `chart-${document.querySelectorAll("figure").length}`;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-labelledby", this.heading.id);
    this.tip = make("div", { className: "tip", hidden: true });
    this.height = height;
    this.element.append(this.heading, this.legend, this.canvas, this.tip);
    parent.append(this.element);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.pick(event));
    new ResizeObserver(() => this.redraw()).observe(this.element);
    addEventListener("replayer-theme", () => this.redraw());
    this.pointed = null;
  }

  // Begin a picture; gives the pen, cleared and in the size of the screen's own points.
  begin(times) {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, this.height);
    pen.font = "11px system-ui, sans-serif";
    this.area = { left: LEFT, right: width - RIGHT, top: TOP, bottom: this.height - BOTTOM };
    this.times = times;
    this.from = times.length ? Math.max(times[0] - this.step(), 0) : 0;
    this.to = times.length ? times.at(-1) : 1;
    return pen;
  }

  step() {
    return this.times.length > 1 ? (this.times.at(-1) - this.times[0]) / (this.times.length - 1) : 1;
  }

  x(seconds) {
    const { left, right } = this.area;
    return left + ((seconds - this.from) / (this.to - this.from || 1)) * (right - left);
  }

  shade(pen, measured) {
    pen.fillStyle = color("rule");
    pen.globalAlpha = 0.45;
    measured.forEach((counts, at) => {
      if (counts) return;
      const begin = this.x(at ? this.times[at - 1] : this.from);
      pen.fillRect(begin, this.area.top, this.x(this.times[at]) - begin, this.area.bottom - this.area.top);
    });
    pen.globalAlpha = 1;
  }

  axes(pen, places) {
    const { left, right, top, bottom } = this.area;
    pen.strokeStyle = color("rule");
    pen.fillStyle = color("soft");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [y, text] of places) {
      pen.beginPath();
      pen.moveTo(left, Math.round(y) + 0.5);
      pen.lineTo(right, Math.round(y) + 0.5);
      pen.stroke();
      pen.fillText(text, left - 6, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const room = Math.max(Math.floor((right - left) / 70), 2);
    const found = marks(this.from, this.to, room);
    this.apart = found.length > 1 ? found[1] - found[0] : 1;
    for (const at of found) pen.fillText(this.when(at), this.x(at), bottom + 7);
    pen.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  }

  // A time as the axis writes it.
  when(seconds) {
    return writeTime(seconds, this.apart);
  }

  // Which interval lies at a place of the picture.
  at(x) {
    const seconds = this.from + ((x - this.area.left) / (this.area.right - this.area.left)) * (this.to - this.from);
    const found = this.times.findIndex((time) => time >= seconds);
    return found < 0 ? this.times.length - 1 : found;
  }

  point(event) {
    if (!this.times?.length) return;
    this.pointed = { at: this.at(event.offsetX), x: event.offsetX, y: event.offsetY };
    this.redraw();
  }

  // Tell which second was clicked at, or touched: a finger points at nothing before.
  pick(event) {
    if (!this.times?.length || !this.onpick) return;
    const at = this.at(event.offsetX);
    this.onpick(at ? this.times[at - 1] : this.from, this.times[at]);
  }

  leave() {
    this.pointed = null;
    this.tip.hidden = true;
    this.redraw();
  }

  // Show lines of text beside the pointer, inside the figure.
  say(lines) {
    const { make } = window.replayer;
    this.tip.replaceChildren(...lines.map((text) => make("div", { textContent: text })));
    this.tip.hidden = false;
    const right = this.pointed.x > this.canvas.clientWidth / 2;
    const left = this.canvas.offsetLeft + this.pointed.x + (right ? -this.tip.offsetWidth - 14 : 14);
    this.tip.style.left = `${Math.max(left, 0)}px`;
    this.tip.style.top = `${this.canvas.offsetTop + 12}px`;
  }

  redraw() {}
}
