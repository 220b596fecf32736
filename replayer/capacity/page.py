"""The result of a search as one HTML page that needs no network: the answer, then the curves."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from replayer.capacity.found import Found, rank
from replayer.capacity.order import CapacityOrder
from replayer.capacity.table import answer_of, prices_of, rows_of, titles_of
from replayer.measure.summary import Statistics
from replayer.measure.units import format_time_ns
from replayer.report.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Chart,
    LogScale,
    Mark,
    colour,
    hit,
    mark,
    polyline,
    show_time,
)
from replayer.report.html import environment, printable

__all__ = ["render_page"]

PERCENTILES = ("p50", "p95", "p99")


def render_page(order: CapacityOrder, found: Sequence[Found]) -> str:
    """Return the page."""
    ranked = [one for one, _ in rank(found)]
    page = environment().get_template("capacity.html")
    return printable(
        page.render(
            scenario=order.scenario,
            goals=[goal.text for goal in order.goals],
            answers=[*answer_of(order, found), *prices_of(order, found)],
            percentiles=PERCENTILES,
            drawn=[chart for one in ranked if (chart := draw_curve(order, one)) is not None],
            tables=[
                (one.target.name, titles_of(one), rows_of(order, one))
                for one in ranked
                if one.points
            ],
        )
    )


def draw_curve(order: CapacityOrder, one: Found) -> Chart | None:
    """Draw latency by load, a line for each percentile; None where nothing was measured.

    The capacity is a band: where it lies with 95 %.
    """
    measured = ((point.load, point.transaction) for point in one.points if point.transaction)
    points = sorted(((load, found.latency) for load, found in measured), key=itemgetter(0))
    times = [time for _, latency in points for _, time in _times(latency)]
    if not times:
        return None
    loads = [load for load, _ in points]
    across = LogScale(min(loads) / 1.2, max(loads) * 1.2, LEFT, RIGHT)
    up = LogScale(max(min(times), 1) / 1.3, max(times) * 1.3, BOTTOM, TOP)
    marks = list(_band(order, one, across))
    for number, name in enumerate(PERCENTILES):
        line = [(load, dict(_times(latency)).get(name)) for load, latency in points]
        places = [(across.place(load), up.place(time), load, time) for load, time in line if time]
        marks.append(polyline([(x, y) for x, y, _, _ in places], colour(number)))
        marks += [
            hit(x, y, f"{name} at {order.load.written(load)}: {format_time_ns(time)}")
            for x, y, load, time in places
        ]
    return Chart(
        f"{one.target.name}: latency by load",
        Axis(across, "load", order.load.written),
        Axis(up, "latency", show_time),
        marks,
    )


def _times(latency: Statistics) -> Iterator[tuple[str, int]]:
    for name, time in zip(
        PERCENTILES, (latency.p50_ns, latency.p95_ns, latency.p99_ns), strict=True
    ):
        if time is not None:
            yield name, time


def _band(order: CapacityOrder, one: Found, across: LogScale) -> Iterator[Mark]:
    interval = one.interval
    if interval is None:
        return
    low, high = across.place(interval.low), min(across.place(interval.high), RIGHT)
    known: dict[str, Any] = {
        "x": low,
        "y": TOP,
        "width": max(high - low, 1),
        "height": BOTTOM - TOP,
    }
    yield mark("rect", classes="band", data_tip=f"capacity {order.load.between(interval)}", **known)
