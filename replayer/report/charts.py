"""Charts as data, which a template draws as SVG: axes, ticks, and marks with their places.

Nothing is measured or judged here. Colours are classes of the page's style sheet, for light and
dark. The pointer shows a mark's ``data-tip``. Every chart has the same view box. Charts over time
are next door (``timelines``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from replayer._native import Histogram
from replayer.measure.summary import Summary, Sweep, TransactionSummary
from replayer.measure.units import format_count, format_time_ns

WIDTH, HEIGHT = 480, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 462, 12, 218
"""The plot's own part of the picture: chosen, room for ``100 ms`` on the left and names below."""
_CHARACTER = 6.4
"""The width of one of a tick's text: chosen, digits of usual fonts at the style sheet's size."""
COLOURS = 8  # of the style sheet; further lines are dashed


@dataclass(frozen=True)
class Mark:
    """An SVG element: its name, attributes and text. The template escapes all of them."""

    name: str
    attributes: Mapping[str, str]
    text: str = ""


def mark(name: str, classes: str | None = None, text: str = "", **attributes: str | float) -> Mark:
    """Return a mark; underscores in names of attributes stand for hyphens."""
    written = {
        key.replace("_", "-"): value if isinstance(value, str) else f"{value:.6g}"
        for key, value in attributes.items()
    }
    return Mark(name, written if classes is None else {**written, "class": classes}, text)


def polyline(points: Sequence[tuple[float, float]], classes: str) -> Mark:
    """Return a line through points."""
    return mark(
        "polyline", f"line {classes}", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    )


def hit(x: float, y: float, tip: str, explains: str | None = None) -> Mark:
    """Return a place that shows a tip, and leads to the element that explains it."""
    more = {} if explains is None else {"data_explains": explains}
    return mark("circle", cx=x, cy=y, r=7, classes="hit", data_tip=tip, **more)


def colour(number: int) -> str:
    """Return the classes of the line of that number."""
    return f"c{number % COLOURS}" + (" dashed" if number >= COLOURS else "")


def show_time(value_ns: float) -> str:
    """Return a time as a tick says it: ``20 ms``."""
    number, _, unit = format_time_ns(value_ns).partition(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


@dataclass(frozen=True)
class LinearScale:
    """Equal differences are equal distances; ``low`` lies at ``begin``, ``high`` at ``end``."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value lies."""
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return round values between low and high, four to eight of them."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** floor(log10(span / 4))
        step *= next((by for by in (5, 2.5, 2) if span / (step * by) >= 4), 1)  # noqa: PLR2004 - as in the docstring
        first = ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, floor(self.high / step + 1e-9) + 1)]


class LogScale(LinearScale):
    """Equal ratios are equal distances; values are positive."""

    def place(self, value: float) -> float:
        """Return where a value lies; what is below the scale lies at its begin."""
        value = max(value, self.low)
        span = log10(self.high / self.low)
        share = log10(value / self.low) / span if span else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return powers of ten; where they are few, also round numbers between them."""
        low, high = floor(log10(self.low) + 1e-9), ceil(log10(self.high) - 1e-9)
        sparse = 2 if high - low > _MOST_DECADES else 1
        for every, steps in ((sparse, _STEPS[0]), *((1, steps) for steps in _STEPS)):
            powers = range(low, high + 1, every)
            found = [step * 10.0**power for power in powers for step in steps]
            found = [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
            if len(found) >= _FEWEST_TICKS:
                break
        return found


_MOST_DECADES = 7  # beyond that every second one is named: chosen
_FEWEST_TICKS = 4  # chosen: fewer do not say how an axis is divided
_STEPS = ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))


@dataclass(frozen=True)
class Axis:
    """An axis; ``show`` gives a tick's text, ``chosen`` where ticks go if not to the scale."""

    scale: LinearScale
    title: str
    show: Callable[[float], str]
    chosen: Sequence[float] | None = None

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the place and the text of each tick."""
        for value in self.scale.ticks() if self.chosen is None else self.chosen:
            yield self.scale.place(value), self.show(value)


@dataclass(frozen=True)
class Chart:
    """A whole chart; a screen reader says its title."""

    title: str
    across: Axis
    up: Axis
    marks: Sequence[Mark]
    box = (WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM)

    def named_ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the middle and the text of each tick below the chart that has room for it."""
        free = 0.0
        for place, text in self.across.ticks():
            half = _CHARACTER * len(text) / 2
            centre = min(place, WIDTH - half)
            if centre - half >= free:
                free = centre + half + _CHARACTER / 2
                yield centre, text


def draw_percentiles(title: str, histograms: Mapping[str, Histogram]) -> Chart | None:
    """Draw latency by percentile, one line for each name; None if none has two samples.

    The scale is that of 1 / (1 - p), as HdrHistogram draws it: the median is at the left, and each
    step to the right leaves a tenth as many samples.
    """
    number = _POINTS if len(histograms) <= _MANY_LINES else _POINTS // 2
    lines = {name: _points(found, number) for name, found in histograms.items() if found.count > 1}
    if not lines:
        return None
    values = [value for points in lines.values() for _, value in points]
    most = max(inverse for points in lines.values() for inverse, _ in points)
    across = LogScale(1.0, max(most, 10.0), LEFT, RIGHT)
    up = LogScale(max(min(values), 1) / 1.3, max(values) * 1.3, BOTTOM, TOP)
    marks = []
    for number, name in enumerate(histograms):
        if name not in lines:
            continue
        places = [(across.place(inverse), up.place(value)) for inverse, value in lines[name]]
        marks.append(polyline(places, colour(number)))
        for (x, y), (inverse, value) in zip(places, lines[name], strict=True):
            where = _percent(inverse) if (inverse, value) != lines[name][-1] else "slowest"
            tip = f"{name}\n{where}: {format_time_ns(value)}"
            marks.append(hit(x, y, tip))
        count = format_count(histograms[name].count)
        marks.append(mark("desc", text=f"{name}: {count} samples"))
    return Chart(
        title,
        Axis(across, "percentile", _percent, _percentile_ticks(across.high)),
        Axis(up, "latency", show_time),
        marks,
    )


_POINTS = 48  # of a line: chosen
_MANY_LINES = 8  # chosen: of more lines each has half the points, so that pages stay small
_SAMPLES_ABOVE = 1.0  # a percentile is drawn while one sample is expected above it
_CROWDED = 2_000.0  # chosen: by eye, at the width of a telephone


def _percentile_ticks(most: float) -> list[float]:
    """Return the places of min, p50, p90, p99 and so on."""
    begin = [1.0, 2.0] if most < _CROWDED else [2.0]  # else min and p50 would touch
    return [*begin, *(10.0**power for power in range(1, 12) if 10.0**power <= most * 1.001)]


def _points(histogram: Histogram, number: int) -> list[tuple[float, int]]:
    """Return 1 / (1 - p) and the value there, from the fastest to the last that is supported.

    The slowest sample ends the line, above the last of them.
    """
    last = max(histogram.count / _SAMPLES_ABOVE, 1.0)
    inverses = np.geomspace(1.0, last, number)
    line = [
        (float(inverse), histogram.percentile(max(100 * (1 - 1 / inverse), 0)))
        for inverse in inverses
    ]
    return [*line, (last, histogram.max)]


def _percent(inverse: float) -> str:
    """Return a percentile's name: ``p50``, ``p99.9``."""
    percent = 100 * (1 - 1 / inverse)
    # p99.9 needs one more digit each decade; what is below p100 is never called so.
    digits = 2 if inverse < 1_000 else max(4, ceil(log10(inverse) - 1e-9) - 2)  # noqa: PLR2004
    text = f"{percent:.{digits}f}".rstrip("0").rstrip(".")
    return f"p{text}" if percent > 0 else "min"


def draw_sweep(sweep: Sweep, summary: Summary) -> Chart | None:
    """Draw latency by size: the median with its spread up to p95, a line for each target."""
    lines = {
        target.name: [
            (sweep.sizes[found.name], found)
            for found in sorted(
                target.overall.transactions, key=lambda item: sweep.sizes.get(item.name, 0)
            )
            if found.name in sweep.sizes and found.latency.p50_ns
        ]
        for target in summary.targets
    }
    points = [point for line in lines.values() for point in line]
    if not points:
        return None
    sizes = [max(size, 1) for size, _ in points]
    labels = sweep.labels
    names = {float(max(size, 1)): labels[name] for name, size in sweep.sizes.items()}
    across = LogScale(min(sizes) / 1.2, max(sizes) * 1.2, LEFT, RIGHT)
    times = [value for _, found in points for value in (*_low_and_high(found), _slowest(found))]
    up = LogScale(max(min(times), 1) / 1.3, max(times) * 1.3, BOTTOM, TOP)
    marks: list[Mark] = []
    for number, (name, line) in enumerate(lines.items()):
        marks += _line(name, line, (across, up), colour(number))
    known = sorted(set(sizes))
    ticks = [float(size) for size in known[:: -(-len(known) // _MOST_TICKS)]]
    return Chart(
        f"{sweep.stem}: latency by size (median; whisker to p95; ring: slowest)",
        Axis(across, "size", lambda size: names[size], ticks),
        Axis(up, "latency", show_time),
        marks,
    )


_MOST_TICKS = 7  # chosen: as many as there is room for


def _line(
    name: str,
    line: Sequence[tuple[int, TransactionSummary]],
    scales: tuple[LogScale, LogScale],
    classes: str,
) -> list[Mark]:
    across, up = scales
    marks, places = [], []
    for size, found in line:
        low, high = _low_and_high(found)
        x, y = across.place(max(size, 1)), up.place(low)
        places.append((x, y))
        marks.append(
            mark("line", x1=x, y1=y, x2=x, y2=up.place(high), classes=f"whisker {classes}")
        )
        worst = _slowest(found)
        marks.append(mark("circle", cx=x, cy=up.place(worst), r=2.5, classes=f"ring {classes}"))
        tip = (
            f"{name}, {found.name}\nmedian {format_time_ns(low)}, up to {format_time_ns(high)}, "
            f"slowest {format_time_ns(worst)}"
        )
        marks.append(hit(x, y, tip))
    return [polyline(places, classes), *marks]


def _slowest(found: TransactionSummary) -> float:
    return float(found.latency.max_ns or 1)


def _low_and_high(found: TransactionSummary) -> tuple[float, float]:
    """Return the median, and p95 or, with few samples, the maximum."""
    times = found.latency
    median = float(times.p50_ns or 1)
    return median, max(float(times.p95_ns or times.max_ns or median), median)
