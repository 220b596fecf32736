"""How sure a figure is: the bootstrap, over rounds and over blocks of seconds in them.

Pure and seeded: the same runs give the same intervals. Rounds are drawn with replacement, and in
each of them blocks of neighbouring slots (Künsch 1989, circular as by Politis and Romano 1992), so
that what hangs together in time stays together. With few rounds the spread comes out too small; it
is widened as Student's t is wider than the normal distribution. It is widened further where chance
has several tries (Bonferroni): pairs of contenders, and looks at a run that goes on until they
differ. With hardly any slots there is no spread to draw from, and no interval is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from replayer._native import Histogram
from replayer.analysis.slots import Distribution
from replayer.measure.summary import samples_needed

_HALVINGS = 60  # beyond the digits of a float


@lru_cache
def student_quantile(chance: float, freedom: int) -> float:
    """Return what a t leaves behind, to both sides together, with this chance (0 to 1).

    For whole degrees of freedom the distribution function is a finite sum (Abramowitz and Stegun,
    'Handbook of Mathematical Functions', 26.7.3 and 26.7.4); bisection inverts it.
    """
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if 1 - _within(middle, freedom) > chance:
            low = middle
        else:
            high = middle
    return sqrt(freedom) * tan(low)


def _within(angle: float, freedom: int) -> float:
    """Return the chance that a t is at most so far from 0: by the angle whose tangent is t/√f."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for place in range(odd + 1, freedom, 2):
        total += term
        term *= place / (place + 1) * cos(angle) ** 2
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


Floats = NDArray[np.float64]
Figure = float | Literal["mean"] | None
"""A percentile, the mean, or None for the throughput."""

DRAWS = 400
"""Chosen: the ends of a 95 % interval rest on ten draws each."""

LEAST_SLOTS = 4
"""Chosen: of fewer slots with samples hardly any differ, and intervals come out without width."""

_CHANCE = 0.05
"""That an interval leaves out the truth; of several tries that it does in any of them."""
_LOW, _HIGH = 100 * _CHANCE / 2, 100 * (1 - _CHANCE / 2)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Figures of one subject as they might have come out."""

    values: Floats
    """A row for each draw, a column for each figure; NaN where nothing was drawn."""
    plain: Floats
    """The figures of what was measured, from the same bins."""
    rounds: int
    """How many rounds it rests on."""
    slots: int
    """How many slots with samples it rests on."""


@dataclass(frozen=True)
class Interval:
    """A 95 % interval; of several contenders those of a figure hold together."""

    low: float
    high: float


@dataclass(frozen=True)
class Draw:
    """Which draws a subject has in common with others."""

    seed: int
    """Targets of one run share it, and so the rounds: those stood side by side."""
    paired: bool = False
    """Whether they share the seconds in the rounds as well: those of a duet were the same."""


def resample(found: Distribution, figures: Sequence[Figure], draw: Draw) -> Resampled:
    """Draw figures of a subject again and again."""
    return resample_mixture([found], [1.0], figures, draw)


def resample_mixture(
    parts: Sequence[Distribution], shares: Sequence[float], figures: Sequence[Figure], draw: Draw
) -> Resampled:
    """Draw figures of several subjects of one target together, each with a given share.

    What is drawn is drawn of all, as they ran side by side. The throughput is the sum.
    """
    slots, own_s = parts[0].slots, parts[0].own_s
    worked = own_s > 0
    rounds = np.unique(slots.rounds[worked])
    if not rounds.size:  # its calls are in the log, and its time was not written down any more
        nothing = np.full((DRAWS, len(figures)), np.nan)
        return Resampled(nothing, nothing[0], 0, 0)
    chosen = np.random.default_rng(draw.seed).multinomial(
        rounds.size, np.full(rounds.size, 1 / rounds.size), DRAWS
    )
    weights = np.zeros((DRAWS, slots.rounds.size))
    own_seed = 0 if draw.paired else sum(part.bins_ns.size for part in parts)
    random = np.random.default_rng([draw.seed, own_seed])
    for place, number in enumerate(rounds):
        own = np.flatnonzero(worked & (slots.rounds == number))
        weights[:, own] = _block_weights(own.size, random) * chosen[:, [place]]
    plain = np.ones((1, weights.shape[1]))
    drawn, measured = (_figures(parts, shares, each, figures) for each in (weights, plain))
    sampled = sum(part.table.sum(axis=1) for part in parts)
    return Resampled(drawn, measured[0], rounds.size, int(np.count_nonzero(sampled)))


def ratio_interval(
    one: Resampled, best: Resampled, figure: int, ratio: float, tries: int
) -> Interval | None:
    """Return the interval of the ratio of two subjects' figures around its measured value.

    None where either rests on fewer than ``LEAST_SLOTS`` slots, or has no such figure (a column).
    ``tries`` is how often chance may leave out the truth: pairs of contenders times looks.
    """
    if min(one.slots, best.slots) < LEAST_SLOTS:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(one.values[:, figure] / best.values[:, figure])
        centre = float(np.log(one.plain[figure] / best.plain[figure]))
    logs = logs[np.isfinite(logs)]
    if logs.size < DRAWS // 2 or not np.isfinite(centre) or ratio <= 0:
        return None
    return _widened(logs - centre, ratio, min(one.rounds, best.rounds), tries)


def _widened(errors: Floats, ratio: float, rounds: int, tries: int) -> Interval:
    """Return the interval that these errors of the logarithm put around a ratio.

    The draws give the width of the spread. They are too few for rare chances, so the distribution
    gives how far out the ends lie.
    """
    low, high = np.percentile(errors, [_LOW, _HIGH]) * _width(rounds)
    # By the farther end, as chance often leaves the other one without width: 1 time in 18 two
    # equal ones have their median in the same one of three rounds, and differ least in that.
    beyond = max(-low, high) * (_quantile(rounds, tries) / _quantile(rounds, 1) - 1)
    low, high = low - beyond, high + beyond
    # Not turned round, as the basic bootstrap does: where all rounds are slow and one is very slow,
    # that would stretch the interval towards 1 (Hesterberg 2015 on reverse percentile intervals).
    bounds = (ratio * float(np.exp(low)), ratio * float(np.exp(high)))
    return Interval(min(bounds[0], ratio), max(bounds[1], ratio))


def _width(rounds: int) -> float:
    """Return by how much to widen for few rounds; one round has no spread that could be widened."""
    if rounds <= 1:
        return 1.0
    return _quantile(rounds, 1) / _quantile(1, 1) * float(np.sqrt(rounds / (rounds - 1)))


def _quantile(rounds: int, tries: int) -> float:
    """Return how many standard errors off chance leaves a ratio, in whichever try it is."""
    chance = _CHANCE / tries
    if rounds <= 1:  # what is known is the spread within it, of many samples
        return NormalDist().inv_cdf(1 - chance / 2)
    return student_quantile(chance, rounds - 1)


def _block_weights(size: int, random: np.random.Generator) -> Floats:
    """Return, for each draw, how often each slot was drawn, in circular blocks."""
    length = max(round(size ** (1 / 3)), 1)  # the usual order for means, see Künsch 1989
    number = -(-size // length)
    starts = random.integers(0, size, (DRAWS, number))
    places = ((starts[:, :, None] + np.arange(length)) % size).reshape(DRAWS, -1)[:, :size]
    places = places + np.arange(DRAWS)[:, None] * size
    return np.bincount(places.ravel(), minlength=DRAWS * size).reshape(DRAWS, size).astype(float)


def _figures(
    parts: Sequence[Distribution],
    shares: Sequence[float],
    weights: Floats,
    figures: Sequence[Figure],
) -> Floats:
    """Return the figures of each row of weights."""
    bins_ns = np.concatenate([part.bins_ns for part in parts])
    order = np.argsort(bins_ns, kind="stable")
    counts = [weights @ part.table for part in parts]
    totals = [found.sum(axis=1, keepdims=True) for found in counts]
    weighted = [
        share * found / np.maximum(total, 1)
        for share, found, total in zip(shares, counts, totals, strict=True)
    ]
    mixed = np.concatenate(weighted, axis=1)[:, order]
    ended, seconds = sum(totals)[:, 0], weights @ parts[0].own_s
    columns = [
        ended / seconds if figure is None else _times(mixed, bins_ns[order], figure)
        for figure in figures
    ]
    return np.where(ended[:, None] > 0, np.column_stack(columns), np.nan)


def _times(mixed: Floats, bins_ns: Floats, figure: float | Literal["mean"]) -> Floats:
    """Return the mean or a percentile of each row of shares."""
    if figure == "mean":
        means: Floats = mixed @ bins_ns / np.maximum(mixed.sum(axis=1), np.finfo(np.float64).tiny)
        return means
    return _percentiles(np.cumsum(mixed, axis=1), bins_ns, figure)


def _percentiles(sums: Floats, bins_ns: Floats, percent: float) -> Floats:
    ranks = percent / 100 * sums[:, -1:] * (1 - 1e-12)  # see ``Histogram.percentile``
    places = np.minimum((sums < ranks).sum(axis=1), bins_ns.size - 1)
    chosen: Floats = bins_ns[places]
    return chosen


@dataclass(frozen=True, eq=False)
class Mixture:
    """Distributions and the share of each; empty ones leave theirs to the others."""

    parts: Sequence[Histogram]
    shares: Sequence[float]
    """As long as ``parts``, above 0; they need not add up to 1."""

    @property
    def count(self) -> int:
        """How many equally weighted samples tell as much: Kish, 'Survey Sampling' (1965)."""
        found = self._filled()
        spread = sum(share**2 / part.count for part, share in found)
        return round(sum(share for _, share in found) ** 2 / spread) if found else 0

    def percentile(self, percent: float) -> int | None:
        """Return the value that so many of the mix do not exceed; None: too few samples."""
        found = self._filled()
        if not found or self.count < samples_needed(percent):
            return None
        tables = [np.array(part.buckets()) for part, _ in found]
        values = np.concatenate([table[:, 0] for table in tables])
        weights = np.concatenate(
            [
                share * table[:, 1] / part.count
                for table, (part, share) in zip(tables, found, strict=True)
            ]
        )
        order = np.argsort(values, kind="stable")
        sums = np.cumsum(weights[order])
        # As in a histogram, one part in 10^12 is taken off, so that a float's last bit decides not.
        rank = percent / 100 * float(sums[-1]) * (1 - 1e-12)
        return int(values[order][min(int(np.searchsorted(sums, rank)), order.size - 1)])

    def _filled(self) -> list[tuple[Histogram, float]]:
        pairs = zip(self.parts, self.shares, strict=True)
        return [(part, share) for part, share in pairs if part.count]
