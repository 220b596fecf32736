"""A number that is not known yet: its possible values and how probable each is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

POINTS = 256
"""Chosen: into how many values a uniform distribution or a product is broken up."""


@dataclass(frozen=True)
class Spread:
    """Values with weights that sum to 1."""

    values: Numbers
    weights: Numbers

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(np.dot(self.values, self.weights))

    @property
    def maximum(self) -> float:
        """The largest value."""
        return float(self.values.max())

    def map(self, function: Callable[[Numbers], Numbers]) -> "Spread":
        """Return the spread of a function of the value."""
        return Spread(function(self.values), self.weights)


def constant(value: float) -> Spread:
    """Return a value that is known."""
    return Spread(np.array([float(value)]), np.ones(1))


def equally(values: npt.ArrayLike) -> Spread:
    """Return equally probable values, each different one once."""
    found, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return Spread(found, counts / counts.sum())


def uniform(low: int, high: int) -> Spread:
    """Return the whole numbers from low to high; many of them are stood for by a few."""
    if high - low < POINTS:
        return equally(np.arange(low, high + 1))
    steps = (np.arange(POINTS) + 0.5) / POINTS
    return equally(low + steps * (high - low))


def weighted(values: npt.ArrayLike, weights: npt.ArrayLike) -> Spread:
    """Return values with weights of any sum."""
    numbers = np.asarray(values, dtype=np.float64)
    shares = np.asarray(weights, dtype=np.float64)
    found, index = np.unique(numbers, return_inverse=True)
    sums = np.bincount(index.ravel(), weights=shares, minlength=len(found))
    return Spread(found, sums / sums.sum())


def ratio_up(total: Spread, block: Spread) -> float:
    """Return the expected number of blocks that a total needs, both drawn independently."""
    small = _thinned(block)
    ratios = np.ceil(total.values[:, None] / np.maximum(small.values[None, :], 1.0))
    return float(total.weights @ ratios @ small.weights)


def pieces(total: Spread, first: Spread, block: Spread) -> float:
    """Return the expected number of pieces of a total: a first one, and blocks of the rest."""
    if first is block:
        return ratio_up(total, block)
    begun = float(total.weights @ (total.values > 0))
    few = _thinned(first)
    return begun + sum(
        float(weight) * ratio_up(total.map(partial(_less, taken)), block)
        for taken, weight in zip(few.values, few.weights, strict=True)
    )


def _less(taken: float, values: Numbers) -> Numbers:
    return np.maximum(values - max(taken, 1.0), 0.0)


def smaller(one: Spread, other: Spread) -> float:
    """Return the expected smaller one of two independent numbers."""
    small = _thinned(other)
    least = np.minimum(one.values[:, None], small.values[None, :])
    return float(one.weights @ least @ small.weights)


def _thinned(spread: Spread) -> Spread:
    if len(spread.values) <= POINTS:
        return spread
    order = np.linspace(0, len(spread.values) - 1, POINTS).astype(int)
    return weighted(spread.values[order], spread.weights[order])


ZERO = constant(0)
