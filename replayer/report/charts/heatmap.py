"""The heat map: time to the right, latency up, and the darker the more calls.

One path for each of a few shades instead of a rectangle for each cell, so that it stays small.
"""

import numpy as np
from numpy.typing import NDArray

from replayer.analysis import Distribution
from replayer.report.charts.frame import BOTTOM, TOP, Axis, draw, show_time
from replayer.report.charts.markup import Markup, tag
from replayer.report.charts.scale import Log
from replayer.report.charts.timeline import time_axis

__all__ = ["draw_heatmap"]

ROWS = 48  # of latency: chosen, 4 points high each
SHADES = 8  # of the style sheet

Floats = NDArray[np.float64]


def draw_heatmap(title: str, found: Distribution, classes: str) -> Markup | None:
    """Draw one target's distribution over time; None where nothing was measured."""
    if not found.table.sum():
        return None
    low, high = float(found.bins_ns[0]) / 1.05, float(found.bins_ns[-1]) * 1.05
    up = Log(low, high, BOTTOM, TOP)
    edges = np.geomspace(low, high, ROWS + 1)
    rows = np.clip(np.searchsorted(edges, found.bins_ns, side="right") - 1, 0, ROWS - 1)
    cells = np.zeros((found.table.shape[0], ROWS))
    for row in range(ROWS):
        cells[:, row] = found.table[:, rows == row].sum(axis=1)
    shades = _shades(cells, found.slots.lengths_s)
    marks = [
        tag("path", d=path, class_=f"heat {classes} h{shade}")
        for shade in range(1, SHADES + 1)
        if (path := _path(found, shades == shade))
    ]
    return draw(
        title,
        Axis(time_axis(found), "seconds of the run", lambda value: f"{value:g}"),
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
    across = time_axis(found)
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
