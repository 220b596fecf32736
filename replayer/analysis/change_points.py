"""Where a series of runs changes: Pettitt's rank test, applied again to both sides of a change.

Ranks need no distribution, and one odd run moves nothing. The statistic of each place is the sum of
the ranks before it, standardised; its largest value is held against the largest ones of the same
values in random order. The change then stands where two medians fit best. Source: A. N. Pettitt, "A
non-parametric approach to the change-point problem", Applied Statistics 28 (1979), 126-135; for
several changes binary segmentation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

LEAST_RUNS = 8  # chosen: with fewer, random order is as extreme too often
LEAST_SIDE = 3
"""Chosen: one or two odd runs are no change."""
ORDERS = 999
"""Chosen: random orders; the smallest share of them that can be told is 1 in 1,000."""
LEVEL = 0.005
"""Chosen so that looking after each of 30 runs raises a false alarm in fewer than 5 of 100 series
(tests/unit/analysis/test_change_points.py simulates that)."""


@dataclass(frozen=True)
class ChangePoint:
    """A place where a series changes."""

    place: int
    """Of the first run after it, from 0."""
    ratio: float
    """How many times as much the median of the runs after it is, up to the next change."""


def find_changes(values: Sequence[float], seed: int = 0) -> list[ChangePoint]:
    """Return where a series of positive figures changes, oldest first."""
    if not values:
        return []
    series = np.asarray(values, dtype=float)
    places = [*_split(series, 0, np.random.default_rng(seed))]
    borders = [0, *places, len(series)]
    medians = [float(np.median(series[begin:end])) for begin, end in pairwise(borders)]
    return [
        ChangePoint(place, after / before)
        for place, (before, after) in zip(places, pairwise(medians), strict=True)
        if before > 0
    ]


def _split(series: np.ndarray, offset: int, generator: np.random.Generator) -> Iterator[int]:
    """Yield the places of the changes in a part of a series, in order."""
    if len(series) < LEAST_RUNS:
        return
    _, which, counts = np.unique(series, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[which]  # equal figures share their mean rank
    found = _statistics(ranks[np.newaxis])[0]
    orders = generator.permuted(np.tile(ranks, (ORDERS, 1)), axis=1)
    extreme = _statistics(orders).max(axis=1) >= found.max()
    if (1 + extreme.sum()) / (1 + ORDERS) > LEVEL:
        return
    place = _border(series)
    yield from _split(series[:place], offset, generator)
    yield offset + place
    yield from _split(series[place:], offset + place, generator)


def _border(series: np.ndarray) -> int:
    """Return the place where two medians fit best: the largest statistic is drawn to the ends."""
    logs = np.log(np.maximum(series, np.finfo(float).tiny))
    places = range(LEAST_SIDE, len(logs) - LEAST_SIDE + 1)
    return min(places, key=lambda place: _spread(logs[:place]) + _spread(logs[place:]))


def _spread(logs: np.ndarray) -> float:
    return float(np.abs(logs - np.median(logs)).sum())


def _statistics(ranks: np.ndarray) -> np.ndarray:
    """Return, for each row of ranks, how far each place is from what equal sides would give."""
    count = ranks.shape[1]
    before = np.arange(LEAST_SIDE, count - LEAST_SIDE + 1)
    sums = ranks.cumsum(axis=1)[:, before - 1]
    expected = before * (count + 1) / 2
    deviation = np.sqrt(before * (count - before) * (count + 1) / 12)
    found: np.ndarray = np.abs(sums - expected) / deviation
    return found
