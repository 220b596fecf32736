// Quantities and axes: how a value is written, and where the marks of an axis stand.

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const BYTES = [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]];
const COUNTS = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const UNITS = { time: TIMES, bytes: BYTES, count: COUNTS };

export function write(value, unit) {
  if (value === null || value === undefined) return "–";
  const rounded = Number(value.toPrecision(3));
  if (rounded === 0) return "0";
  const [factor, name] = UNITS[unit].find(([least]) => Math.abs(rounded) >= least) ?? [1, UNITS[unit].at(-1)[1]];
  return `${Number((rounded / factor).toPrecision(3)).toLocaleString("en")} ${name}`.trim();
}

// A time with as many decimals as its neighbour needs to be told from it.
export function writeTime(seconds, step = 1) {
  if (step < 1) return `${seconds.toFixed(Math.ceil(-Math.log10(step) - 1e-9))} s`;
  const whole = Math.round(seconds);
  const rest = String(whole % 60).padStart(2, "0");
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${rest}`;
}

// Marks at 1, 2 or 5 times a power of ten; about so many.
export function marks(low, high, about) {
  if (!(high > low)) return [low];
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(at);
  return found;
}

// Powers of ten, and 2 and 5 between them where there is room.
export function logMarks(low, high) {
  const found = [];
  const sparse = Math.log10(high / low) > 3;
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1)
    for (const each of sparse ? [1] : [1, 2, 5]) {
      const at = each * 10 ** power;
      if (at >= low * 0.999 && at <= high * 1.001) found.push(at);
    }
  return found;
}

export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const COLOURS = 8; // of the palette
const DASHES = [[], [6, 3], [2, 3]];
export const hue = (at) => color(`k${at % COLOURS}`);
export const dash = (at) => DASHES[Math.floor(at / COLOURS) % DASHES.length];
