// Lines over time: one value a second and line, gaps where there is none.

import { Frame } from "./frame.js";
import { color, dash, hue, logMarks, marks, write } from "./scale.js";

export class Lines extends Frame {
  constructor(parent, { unit, log = false, ...rest }) {
    super(parent, rest);
    this.unit = unit;
    this.log = log;
    this.hidden = new Set();
    this.data = null;
  }

  draw(data) {
    this.data = data;
    this.list(data.lines);
    this.redraw();
  }

  list(lines) {
    const names = lines.map(({ name }) => name).join("\n");
    if (names === this.listed) return;
    this.listed = names;
    this.legend.replaceChildren(...lines.map(({ name }, at) => this.entry(name, at)));
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
      this.redraw();
    };
    show();
    return button;
  }

  redraw() {
    if (!this.data || !this.canvas.clientWidth) return;
    const pen = this.begin(this.data.times);
    const lines = this.data.lines.map((line, at) => ({ ...line, at })).filter(({ name }) => !this.hidden.has(name));
    this.range(lines);
    this.shade(pen, this.data.measured);
    this.axes(pen, this.places());
    for (const line of lines) this.stroke(pen, line);
    if (this.data.none && !lines.some(({ values }) => values.some((value) => value !== null))) this.excuse(pen);
    if (this.pointed) this.explain(pen, lines);
  }

  range(lines) {
    let low = Infinity;
    let high = -Infinity;
    for (const { values } of lines)
      for (const value of values)
        if (value !== null && (!this.log || value > 0)) {
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
    if (low > high) [low, high] = this.log ? [1e3, 1e6] : [0, 1];
    const room = high / low < 3 ? 2.5 : 1.3; // or no mark of the axis lies in it
    this.low = this.log ? low / room : 0;
    this.high = this.log ? high * room : high * 1.08 || 1;
  }

  y(value) {
    const { top, bottom } = this.area;
    const share = this.log
      ? Math.log(Math.max(value, this.low) / this.low) / Math.log(this.high / this.low)
      : (value - this.low) / (this.high - this.low);
    return bottom - share * (bottom - top);
  }

  places() {
    const found = this.log ? logMarks(this.low, this.high) : marks(this.low, this.high, 4);
    return found.map((at) => [this.y(at), write(at, this.unit)]);
  }

  stroke(pen, { values, at }) {
    pen.strokeStyle = pen.fillStyle = hue(at);
    pen.lineWidth = 1.6;
    pen.setLineDash(dash(at));
    pen.beginPath();
    let drawn = false;
    values.forEach((value, column) => {
      if (value === null) {
        drawn = false;
        return;
      }
      const [x, y] = [this.x(this.times[column]), this.y(value)];
      if (drawn) pen.lineTo(x, y);
      else pen.moveTo(x, y);
      const alone = !drawn && (values[column + 1] ?? null) === null;
      if (alone) pen.fillRect(x - 1.5, y - 1.5, 3, 3);
      drawn = true;
    });
    pen.stroke();
    pen.setLineDash([]);
  }

  // Say why there is no line.
  excuse(pen) {
    const { left, right, top, bottom } = this.area;
    pen.fillStyle = color("soft");
    pen.textAlign = "center";
    pen.fillText(this.data.none, (left + right) / 2, (top + bottom) / 2, right - left - 16);
  }

  explain(pen, lines) {
    const { at } = this.pointed;
    const x = Math.round(this.x(this.times[at])) + 0.5;
    pen.strokeStyle = color("soft");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, this.area.top);
    pen.lineTo(x, this.area.bottom);
    pen.stroke();
    const values = lines.map(({ name, values }) => `${name}: ${write(values[at], this.unit)}`);
    this.say([this.when(this.times[at]), ...values]);
  }
}
