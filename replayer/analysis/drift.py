"""Drift: a series of latencies that rises or falls all the way, without steps.

Pure. The size is the slope of Theil and Sen; the test is Mann and Kendall's, its variance widened
by the autocorrelation of what remains, as by Yue and Wang, 'The Mann-Kendall test modified by
effective sample size' (Water Resources Management 2004).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Slope", "find_slope"]

Floats = NDArray[np.float64]

SHORTEST = 30  # values: chosen, below that a drift and a bad start look alike
MOST_POINTS = 240  # chosen: longer series are averaged to this many
LEAST_FACTOR = 1.25  # chosen: a quarter over the whole run
CRITICAL = 6.0
"""Chosen: standard deviations. 16,000 simulated series of noise without drift (normal, Pareto, two
groups, spikes, autoregressive up to 0.9; 30 and 120 values long) gave no alarm."""


@dataclass(frozen=True)
class Slope:
    """The two ends of the line through a series."""

    begin: float
    end: float


def find_slope(values: Floats) -> Slope | None:
    """Return the line of a series that drifts; None for one that does not."""
    if values.size < SHORTEST:
        return None
    logs = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    if logs.size > MOST_POINTS:
        logs = np.array([part.mean() for part in np.array_split(logs, MOST_POINTS)])
    steps = np.arange(logs.size)
    first, second = np.triu_indices(logs.size, 1)
    rises = logs[second] - logs[first]
    slope = float(np.median(rises / (second - first)))
    change = slope * (logs.size - 1)
    if abs(change) < np.log(LEAST_FACTOR):
        return None
    rest = logs - slope * steps
    score = abs(float(np.sign(rises).sum())) / _deviation(logs.size, _autocorrelation(rest))
    if score < CRITICAL:
        return None
    middle = float(np.median(rest))
    return Slope(float(np.exp(middle)), float(np.exp(middle + change)))


def _deviation(size: int, autocorrelation: float) -> float:
    """Return the standard deviation of Kendall's S without a trend."""
    variance = size * (size - 1) * (2 * size + 5) / 18
    return float(np.sqrt(variance * (1 + autocorrelation) / (1 - autocorrelation)))


def _autocorrelation(values: Floats) -> float:
    """Return that of lag one, corrected for its bias in short series (Kendall 1954)."""
    centred = values - values.mean()
    power = float(centred @ centred)
    if power <= 0:
        return 0.0
    found = float(centred[1:] @ centred[:-1]) / power
    return min(max(found + (1 + 4 * found) / values.size, 0.0), _STRONGEST)


_STRONGEST = 0.98  # chosen: a random walk has no drift that could be told
