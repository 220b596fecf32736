"""Latency by size, where a run has a transaction for each of several sizes."""

from collections.abc import Sequence

from replayer.measure import Summary, Sweep, TransactionSummary, format_time_ns
from replayer.report.charts.frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    colour,
    draw,
    polyline,
    show_time,
)
from replayer.report.charts.markup import Markup, tag
from replayer.report.charts.scale import Log

__all__ = ["draw_sweep"]


def draw_sweep(sweep: Sweep, summary: Summary) -> Markup | None:
    """Draw the median of each size with its spread up to p95, a line for each target."""
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
    across = Log(min(sizes) / 1.2, max(sizes) * 1.2, LEFT, RIGHT)
    times = [value for _, found in points for value in (*_low_and_high(found), _slowest(found))]
    up = Log(max(min(times), 1) / 1.3, max(times) * 1.3, BOTTOM, TOP)
    marks: list[Markup] = []
    for number, (name, line) in enumerate(lines.items()):
        marks += _line(name, line, (across, up), colour(number))
    return draw(
        f"{sweep.stem}: latency by size (median; whisker to p95; ring: slowest)",
        Axis(across, "size", lambda size: names[size], _ticks(sizes)),
        Axis(up, "latency", show_time),
        marks,
    )


def _ticks(sizes: Sequence[int]) -> list[float]:
    """Return some of the sizes, evenly, and the first and the last of them."""
    known = sorted(set(sizes))
    step = -(-len(known) // _MOST_TICKS)
    return [float(size) for size in known[::step]]


_MOST_TICKS = 7  # chosen: as many as there is room for


def _line(
    name: str,
    line: Sequence[tuple[int, TransactionSummary]],
    scales: tuple[Log, Log],
    classes: str,
) -> list[Markup]:
    across, up = scales
    marks, places = [], []
    for size, found in line:
        low, high = _low_and_high(found)
        x, y = across.place(max(size, 1)), up.place(low)
        places.append((x, y))
        marks.append(tag("line", x1=x, y1=y, x2=x, y2=up.place(high), class_=f"whisker {classes}"))
        worst = _slowest(found)
        marks.append(tag("circle", cx=x, cy=up.place(worst), r=2.5, class_=f"ring {classes}"))
        tip = (
            f"{name}, {found.name}\nmedian {format_time_ns(low)}, up to {format_time_ns(high)}, "
            f"slowest {format_time_ns(worst)}"
        )
        marks.append(tag("circle", cx=x, cy=y, r=7, class_="hit", data_tip=tip))
    return [polyline(places, classes), *marks]


def _slowest(found: TransactionSummary) -> float:
    return float(found.latency.max_ns or 1)


def _low_and_high(found: TransactionSummary) -> tuple[float, float]:
    """Return the median, and p95 or, with few samples, the maximum."""
    times = found.latency
    median = float(times.p50_ns or 1)
    return median, max(float(times.p95_ns or times.max_ns or median), median)
