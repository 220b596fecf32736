"""Distributions as tables of equally probable integers, and draws that refer to them."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from replayer.scenario.draws import Draw, Lognormal

RESOLUTION = 4096
"""Chosen: a table reaches to its 99.988th percentile and takes 32 KiB in an engine."""


class Tables:
    """The tables of a plan, each there once."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self._index: dict[tuple[int, ...], int] = {}

    def add(self, row: Sequence[int]) -> int:
        """Return the index of a table, adding it if it is new."""
        key = tuple(row)
        if key not in self._index:
            self._index[key] = len(self.rows)
            self.rows.append(list(key))
        return self._index[key]


def tabulate(draw: Draw[int]) -> list[int] | None:
    """Return a distribution's table, or None for constants, uniform draws and sizes of files."""
    if draw.lognormal is not None:
        return _lognormal(draw.lognormal)
    if draw.exponential is not None:
        return exponential_table(draw.exponential)
    if draw.quantiles is not None:
        return _interpolated(draw.quantiles)
    return list(draw.values) if draw.values is not None else None


def _midpoints() -> list[float]:
    return [(index + 0.5) / RESOLUTION for index in range(RESOLUTION)]


def _lognormal(shape: Lognormal[int]) -> list[int]:
    normal = NormalDist()
    sigma = math.log(shape.p95 / shape.median) / normal.inv_cdf(0.95)
    return [round(shape.median * math.exp(sigma * normal.inv_cdf(q))) for q in _midpoints()]


def exponential_table(mean: float) -> list[int]:
    """Return an exponential distribution whose table has exactly the mean asked for."""
    raw = [-math.log1p(-q) for q in _midpoints()]
    scale = mean * RESOLUTION / math.fsum(raw)
    row = [round(value * scale) for value in raw]
    row[-1] += round(mean * RESOLUTION) - sum(row)  # what rounding left over
    return row


def _interpolated(quantiles: Sequence[int]) -> list[int]:
    spans = len(quantiles) - 1
    row = []
    for q in _midpoints():
        position = q * spans
        index = min(int(position), spans - 1)
        low, high = quantiles[index], quantiles[index + 1]
        row.append(round(low + (high - low) * (position - index)))
    return row
