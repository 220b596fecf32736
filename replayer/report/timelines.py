"""Charts over time: the latency of each slot with what happened, and the heat map.

The timeline shows median, p99 and slowest call; it marks steps and stalls where they were found,
and the rounds. In the heat map time goes to the right and latency up; darker means more calls. It
has one path for each of a few shades instead of a rectangle for each cell: so it stays small.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.explain import Window
from replayer.analysis.finding import Silence, Step
from replayer.analysis.slots import Distribution, Widening
from replayer.measure.run import CloudMetric
from replayer.measure.summary import samples_needed
from replayer.measure.units import format_duration, format_time_ns, format_times
from replayer.report.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Chart,
    LinearScale,
    LogScale,
    Mark,
    colour,
    hit,
    mark,
    polyline,
    show_time,
)
from replayer.report.description import show_metric

Floats = NDArray[np.float64]

_LINES = ((50.0, "median", "thick"), (99.0, "p99", "dashed"), (100.0, "slowest", "thin"))
TIMELINE_KEY = (
    "thick: median; dashed: p99, of as many slots together as hold the samples for one (100); "
    "thin: the slowest of each slot; shaded: between two rounds"
)
_GAP_SLOTS = 3  # slots without a sample that break a line: chosen


@dataclass(frozen=True)
class Happenings:
    """What is marked on the time axis of one target."""

    steps: Sequence[Step]
    silences: Sequence[Silence]


def draw_timeline(
    title: str,
    found: Distribution,
    happenings: Happenings,
    explained: Sequence[tuple[Window, str]],
    classes: str,
) -> Chart | None:
    """Draw one target's latency over time; None where nothing was measured.

    Windows that are explained lead to the element of a name.
    """
    if not found.table.sum():
        return None
    slots = found.slots
    across = _time_axis(found)
    lines = {name: _supported(found, percent) for percent, name, _ in _LINES}
    values = np.concatenate(list(lines.values()))
    values = values[np.isfinite(values)]
    up = LogScale(max(float(values.min()), 1) / 1.3, float(values.max()) * 1.3, BOTTOM, TOP)
    marks = [*_windows(across, explained), *_happened(across, happenings), *_rounds(across, found)]
    middles = slots.begins_s + slots.lengths_s / 2
    for _, name, width in _LINES:
        for part in _unbroken(lines[name], found):
            points = [
                (across.place(float(middles[i])), up.place(float(lines[name][i]))) for i in part
            ]
            # A line of no length shows as a dot, its ends being round.
            marks.append(polyline(points if len(points) > 1 else points * 2, f"{classes} {width}"))
    for place in np.flatnonzero(np.isfinite(lines["median"])):
        texts = [
            f"{name} {format_time_ns(float(line[place]))}"
            for name, line in lines.items()
            if np.isfinite(line[place])
        ]
        tip = "\n".join([f"at {format_duration(float(slots.begins_s[place]))}", *texts])
        x, y = across.place(float(middles[place])), up.place(float(lines["median"][place]))
        at_s = float(middles[place])
        leads_to = next((name for (begin, end), name in explained if begin <= at_s < end), None)
        marks.append(hit(x, y, tip, leads_to))
    return Chart(
        title,
        Axis(across, "seconds of the run", lambda value: f"{value:g}"),
        Axis(up, "latency", show_time),
        marks,
    )


def draw_metric(found: CloudMetric, timeline: Distribution) -> Chart | None:
    """Draw a cloud's metric on the time axis of a target; None where it has no point there."""
    if not found.values:
        return None
    across = _time_axis(timeline)
    up = LinearScale(0, max(*found.values, 1.0) * 1.05, BOTTOM, TOP)
    points = [
        (min(max(across.place(at_s), LEFT), RIGHT), up.place(value))
        for at_s, value in zip(found.at_s, found.values, strict=True)
    ]
    tips = (
        f"at {format_duration(max(at_s, 0))}\n{show_metric(found.unit, value)}"
        for at_s, value in zip(found.at_s, found.values, strict=True)
    )
    line = polyline(points if len(points) > 1 else points * 2, f"{colour(0)} thick")
    return Chart(
        f"{found.metric} over time",
        Axis(across, "seconds of the run", lambda value: f"{value:g}"),
        Axis(up, found.unit, lambda value: show_metric(found.unit, value)),
        [line, *(hit(x, y, tip) for (x, y), tip in zip(points, tips, strict=True))],
    )


def _time_axis(found: Distribution) -> LinearScale:
    """Return the scale from the begin of the first slot to the end of the last."""
    slots = found.slots
    end = float(slots.begins_s[-1] + slots.lengths_s[-1])
    return LinearScale(float(slots.begins_s[0]), end, LEFT, RIGHT)


def _supported(found: Distribution, percent: float) -> Floats:
    """Return a percentile of each slot, or of as many as it needs; NaN: too few samples."""
    widening, values = Widening(samples_needed(percent)), np.full(found.table.shape[0], np.nan)
    rounds = found.slots.rounds
    for place, count in enumerate(found.table.sum(axis=1)):
        if place and rounds[place] != rounds[place - 1]:
            widening.cut()
        joined = widening.add(place, float(count))
        if joined is not None:
            own = slice(joined.start, joined.stop)
            values[own] = _percentile(found.bins_ns, found.table[own].sum(axis=0), percent)
    return values


def _percentile(bins_ns: Floats, counts: Floats, percent: float) -> float:
    sums = np.cumsum(counts)
    rank = max(np.ceil(percent / 100 * sums[-1] * (1 - 1e-12)), 1)
    return float(bins_ns[min(int(np.searchsorted(sums, rank)), bins_ns.size - 1)])


def _unbroken(values: Floats, found: Distribution) -> Iterator[list[int]]:
    """Yield the places of values in pieces, broken between rounds and where many are missing."""
    piece: list[int] = []
    rounds = found.slots.rounds
    for place in np.flatnonzero(np.isfinite(values)):
        if piece and (place - piece[-1] > _GAP_SLOTS or rounds[place] != rounds[piece[-1]]):
            yield piece
            piece = []
        piece.append(int(place))
    if piece:
        yield piece


def _windows(across: LinearScale, explained: Sequence[tuple[Window, str]]) -> Iterator[Mark]:
    """Yield an area for each window, which leads to its explanation."""
    for (begin, end), name in explained:
        x, width = across.place(begin), across.place(end) - across.place(begin)
        height = BOTTOM - TOP
        yield mark(
            "rect", x=x, y=TOP, width=width, height=height, classes="window", data_explains=name
        )


def _happened(across: LinearScale, happenings: Happenings) -> Iterator[Mark]:
    for silence in happenings.silences:
        begin, end = across.place(silence.at_s), across.place(silence.at_s + silence.length_s)
        tip = f"stall: nothing ended for {format_duration(silence.length_s)}"
        yield _band(begin, max(end - begin, 2), "stall", tip)
    for x, steps in _beside(across, happenings.steps):
        tip = "\n".join(
            f"{step.subject}: {format_time_ns(step.before_ns)} before, "
            f"{format_time_ns(step.after_ns)} after"
            for step in steps
        )
        largest = max(steps, key=lambda step: step.factor)
        kind = "cliff" if largest.direction == "slower" else "recovery"
        yield mark("line", x1=x, y1=TOP, x2=x, y2=BOTTOM, classes=f"step {kind}", data_tip=tip)
        side = "end" if x > (LEFT + RIGHT) / 2 else "start"
        text = f"{format_times(largest.factor)} {largest.direction}"
        shift = -4 if side == "end" else 4
        yield mark("text", text=text, x=x + shift, y=TOP + 12, classes=f"mark {kind} {side}")


def _beside(across: LinearScale, steps: Sequence[Step]) -> list[tuple[float, list[Step]]]:
    """Return steps by their place; those that are drawn over each other are one."""
    found: list[tuple[float, list[Step]]] = []
    for step in sorted(steps, key=lambda step: step.at_s):
        x = across.place(step.at_s)
        if found and x - found[-1][0] < _TOUCHING:
            found[-1][1].append(step)
        else:
            found.append((x, [step]))
    return found


_TOUCHING = 6.0  # of the picture's width of 480: chosen


def _rounds(across: LinearScale, found: Distribution) -> Iterator[Mark]:
    slots = found.slots
    changed = np.flatnonzero(slots.rounds[1:] != slots.rounds[:-1]) + 1
    for place in changed:
        before = slots.begins_s[place - 1] + slots.lengths_s[place - 1]
        begin, end = across.place(float(before)), across.place(float(slots.begins_s[place]))
        tip = f"round {int(slots.rounds[place]) + 1} begins after it"
        yield _band(begin, max(end - begin, 1), "between", tip)


def _band(x: float, width: float, classes: str, tip: str) -> Mark:
    height = BOTTOM - TOP
    return mark("rect", x=x, y=TOP, width=width, height=height, classes=classes, data_tip=tip)


ROWS = 48  # of latency: chosen, 4 points high each
SHADES = 8  # of the style sheet


def draw_heatmap(
    title: str, found: Distribution, explained: Sequence[tuple[Window, str]], classes: str
) -> Chart | None:
    """Draw one target's distribution over time; None where nothing was measured."""
    if not found.table.sum():
        return None
    low, high = float(found.bins_ns[0]) / 1.05, float(found.bins_ns[-1]) * 1.05
    up = LogScale(low, high, BOTTOM, TOP)
    edges = np.geomspace(low, high, ROWS + 1)
    rows = np.clip(np.searchsorted(edges, found.bins_ns, side="right") - 1, 0, ROWS - 1)
    cells = np.zeros((found.table.shape[0], ROWS))
    for row in range(ROWS):
        cells[:, row] = found.table[:, rows == row].sum(axis=1)
    shades = _shades(cells, found.slots.lengths_s)
    marks = [
        mark("path", d=path, classes=f"heat {classes} h{shade}")
        for shade in range(1, SHADES + 1)
        if (path := _path(found, shades == shade))
    ]
    marks += _windows(_time_axis(found), explained)
    return Chart(
        title,
        Axis(_time_axis(found), "seconds of the run", lambda value: f"{value:g}"),
        Axis(up, "latency", show_time),
        marks,
    )


def _shades(cells: Floats, lengths_s: Floats) -> NDArray[np.int64]:
    """Return 0 for empty cells, else 1 to ``SHADES`` by the logarithm of their rate."""
    rates = cells / lengths_s[:, None]
    filled = rates > 0
    lowest, highest = float(rates[filled].min()), float(rates[filled].max())
    span = max(np.log(highest / lowest), 1e-9)
    with np.errstate(divide="ignore"):
        shares = np.log(rates / lowest) / span
    found = np.where(filled, 1 + np.floor(shares * (SHADES - 1e-6)), 0)
    return np.clip(found, 0, SHADES).astype(np.int64)


def _path(found: Distribution, chosen: NDArray[np.bool_]) -> str:
    """Return rectangles for chosen cells; those that touch upwards are one."""
    across = _time_axis(found)
    height = (BOTTOM - TOP) / ROWS
    parts = []
    for slot in np.flatnonzero(chosen.any(axis=1)):
        begin = across.place(float(found.slots.begins_s[slot]))
        end = across.place(float(found.slots.begins_s[slot] + found.slots.lengths_s[slot]))
        column = np.concatenate([[False], chosen[slot], [False]]).astype(np.int8)
        changes = np.flatnonzero(np.diff(column))
        for bottom, top in zip(changes[::2], changes[1::2], strict=True):
            y = BOTTOM - top * height
            parts.append(
                f"M{begin:.1f} {y:.1f}h{max(end - begin, 0.5):.1f}v{(top - bottom) * height:.1f}"
                f"H{begin:.1f}z"
            )
    return "".join(parts)
