"""Latency by percentile, in the manner of HdrHistogram: the scale is that of 1 / (1 - p).

The median is at the left, and each step to the right leaves a tenth as many samples.
"""

from collections.abc import Mapping
from math import ceil, log10

import numpy as np

from replayer.measure import Histogram, format_count, format_time_ns
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

__all__ = ["draw_percentiles"]

_POINTS = 48  # of a line: chosen
_MANY_LINES = (
    8  # chosen: of more lines than that each has half the points, so that pages stay small
)
_SAMPLES_ABOVE = 1.0  # a percentile is drawn while one sample is expected above it


def draw_percentiles(title: str, histograms: Mapping[str, Histogram]) -> Markup | None:
    """Draw one line for each name; None if none has two samples."""
    number = _POINTS if len(histograms) <= _MANY_LINES else _POINTS // 2
    lines = {name: _points(found, number) for name, found in histograms.items() if found.count > 1}
    if not lines:
        return None
    values = [value for points in lines.values() for _, value in points]
    most = max(inverse for points in lines.values() for inverse, _ in points)
    across = Log(1.0, max(most, 10.0), LEFT, RIGHT)
    up = Log(max(min(values), 1) / 1.3, max(values) * 1.3, BOTTOM, TOP)
    marks = []
    for number, name in enumerate(histograms):
        if name not in lines:
            continue
        places = [(across.place(inverse), up.place(value)) for inverse, value in lines[name]]
        marks.append(polyline(places, colour(number)))
        for (x, y), (inverse, value) in zip(places, lines[name], strict=True):
            where = _percent(inverse) if (inverse, value) != lines[name][-1] else "slowest"
            tip = f"{name}\n{where}: {format_time_ns(value)}"
            marks.append(tag("circle", cx=x, cy=y, r=7, class_="hit", data_tip=tip))
        count = format_count(histograms[name].count)
        marks.append(tag("desc", f"{name}: {count} samples"))
    return draw(
        title,
        Axis(across, "percentile", _percent, _ticks(across.high)),
        Axis(up, "latency", show_time),
        marks,
    )


def _ticks(most: float) -> list[float]:
    """Return the places of min, p50, p90, p99 and so on."""
    begin = [1.0, 2.0] if most < _CROWDED else [2.0]  # else min and p50 would touch
    return [*begin, *(10.0**power for power in range(1, 12) if 10.0**power <= most * 1.001)]


_CROWDED = 2_000.0  # chosen: by eye, at the width of a telephone


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
