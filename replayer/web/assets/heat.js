// A heat map: time across, latency upwards (each step a quarter more), darker where more calls ended.

import { Frame } from "./frame.js";
import { color, logMarks, write } from "./scale.js";

export class Heat extends Frame {
  draw(data) {
    this.data = data;
    this.redraw();
  }

  redraw() {
    if (!this.data || !this.canvas.clientWidth) return;
    const { times, measured, heat, perDecade } = this.data;
    const pen = this.begin(times);
    this.perDecade = perDecade;
    this.range(heat);
    this.shade(pen, measured);
    const [low, high] = [this.value(this.low), this.value(this.high)];
    this.axes(pen, logMarks(low, high).map((at) => [this.y(Math.log10(at) * perDecade), write(at, "time")]));
    this.fill(pen, heat);
    if (this.pointed) this.explain(heat);
  }

  range(heat) {
    this.low = Infinity;
    this.high = -Infinity;
    this.most = 1;
    for (const column of heat)
      for (const [bin, count] of column) {
        this.low = Math.min(this.low, bin);
        this.high = Math.max(this.high, bin + 1);
        this.most = Math.max(this.most, count);
      }
    if (this.low > this.high) [this.low, this.high] = [30, 60];
    this.low -= 1;
    this.high += 1;
  }

  value(bin) {
    return 10 ** (bin / this.perDecade);
  }

  y(bin) {
    const { top, bottom } = this.area;
    return bottom - ((bin - this.low) / (this.high - this.low)) * (bottom - top);
  }

  fill(pen, heat) {
    const rgb = window.replayer.theme() === "dark" ? "86, 180, 233" : "0, 82, 140";
    heat.forEach((column, at) => {
      const left = this.x(at ? this.times[at - 1] : this.from);
      const width = Math.max(this.x(this.times[at]) - left, 1);
      for (const [bin, count] of column) {
        // By the logarithm: one slow call among ten thousand must be seen.
        const share = 0.18 + 0.82 * (Math.log(1 + count) / Math.log(1 + this.most));
        pen.fillStyle = `rgba(${rgb}, ${share.toFixed(3)})`;
        pen.fillRect(left, this.y(bin + 1), width, this.y(bin) - this.y(bin + 1));
      }
    });
    pen.strokeStyle = color("rule");
  }

  explain(heat) {
    const { at, y } = this.pointed;
    const { top, bottom } = this.area;
    const bin = Math.floor(this.low + ((bottom - y) / (bottom - top)) * (this.high - this.low));
    const count = heat[at]?.find(([found]) => found === bin)?.[1] ?? 0;
    const range = `${write(this.value(bin), "time")} to ${write(this.value(bin + 1), "time")}`;
    this.say([this.when(this.times[at]), range, `${count.toLocaleString("en")} ended`]);
  }
}
