"""What is believed of a target's capacity after some trials, and which load is tried next. Pure.

The share of bad transactions grows with the load: its logarithm is taken for a straight line near
the capacity, where the share is the one that the goal allows. Queues near their limit behave so:
times are exponential, with a rate that falls evenly as the load grows (Kingman 1961). This is a
dose-response curve, as bioassays fit them (Finney, Probit Analysis, 1947). Its two unknowns,
capacity and slope, lie on a grid; each trial multiplies the belief in each pair by how likely its
counts are there.

Transactions that queue behind one another are no independent samples: how much the parts of trials
differ, compared with independent ones, divides what all of them tell (quasi-likelihood, McCullagh
1983). It is pooled over trials: of one alone it would be small just where by chance few were bad.

Probabilistic bisection (Waeber, Frazier and Henderson 2013) was compared on the same queue of known
capacity: it takes each trial for an independent vote, and was 3.8 % too high on average; 32 of 100
of its intervals covered the truth. The curve was 0.5 % too low, and 20 of 20 covered it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from replayer.capacity.goals import Counts, Goal

__all__ = ["Interval", "Move", "Search", "ratio_of"]

Floats = NDArray[np.float64]

LEAST, MOST = 0.1, 1e6  # chosen: a few in a trial, and more than a client makes
LOADS: Floats = np.geomspace(LEAST, MOST, 2_000)
"""Each 0.8 % above the one before: far below any precision that is asked for."""
SLOPES: Floats = np.geomspace(1, 100, 30)
"""Chosen: at twice the load from three times the share to a cliff."""
GROWTH = 4.0  # chosen: from one page view a second to 1,000 in five trials
LEAST_FITTED, MOST_FITTED = 0.2, 6.0
"""Measured with a queue: a share below, or above, so many times what is allowed lies on a side; the
line is no longer straight there. With 0.1, and shares of up to a half, 7 % of 150 capacities were
off by more than 5 %; so 2 % of 120."""
SPREAD = 10.0  # chosen: of transactions that queue, until it is measured
LEAST_SHARE, MOST_SHARE = 0.001, 0.3  # chosen: trials that tell how much parts differ
SURE = 3.0
"""How many standard errors are added to how much parts differ. Few queues that grow and shrink tell
it badly, and where it seems small by chance, a search ends. With two of them 89 to 93 % of 160
intervals of simulated queues covered the truth, with three 94 to 97 % of 360. How trials differ
from one another (Pearson's statistic around the curve) was tried beside it: no figure changed."""
LOW, HIGH = 0.025, 0.975
"""The bounds of an interval of 95 %."""
BESIDE = (0.3, 0.7)
"""Chosen: loads on both sides of the capacity, in turn, tell the slope, too."""
CLEAR = log(100)  # chosen: the odds at which a trial has told its side
LEAST_NEAR = 6  # measured with a queue: with fewer 3 of 40 capacities were off by 7 to 10 %
MOVED = 8.0  # chosen: by chance two curves fit so much better in 1 of 1,000 searches
LEAST_TRIALS = 3  # chosen: before and after a capacity moved
DRAWS = 20_000  # chosen: bounds of a ratio are right to 1 % of its width


@dataclass(frozen=True)
class Interval:
    """An estimate, and bounds between which it lies with 95 %."""

    estimate: float
    low: float
    high: float

    def is_within(self, precision: float) -> bool:
        """Whether both bounds are as near to the estimate as that share of it."""
        least, most = self.estimate * (1 - precision), self.estimate * (1 + precision)
        return least <= self.low and self.high <= most


@dataclass(frozen=True)
class Move:
    """A capacity that was another one from some trial on."""

    place: int
    """Number of the first trial after it, from 0."""
    before: Interval
    after: Interval


@dataclass
class Search:
    """The search for the largest load of one target at which all goals hold."""

    goals: Sequence[Goal]
    trials: list[tuple[float, Sequence[Counts]]] = field(default_factory=list)
    """The load of each, and what it counted for each goal."""
    moved: Move | None = None
    """Since when the capacity is another one."""
    _sums: list[list[Floats]] = field(default_factory=list)
    """How well each capacity and slope fits the first trials, for each goal; more with each one."""
    _tails: dict[tuple[int, int, int], Floats] = field(default_factory=dict)

    def learn(self, load: float, counts: Sequence[Counts]) -> None:
        """Take what a trial has counted for each goal."""
        self.trials.append((load, tuple(counts)))
        pairs = zip(self.goals, counts, strict=True)
        fits = [_fit(load, each, goal.share) for goal, each in pairs]
        before = self._sums[-1] if self._sums else [np.zeros_like(fit) for fit in fits]
        self._sums.append([fit + earlier for fit, earlier in zip(fits, before, strict=True)])
        self._tails.clear()  # with each trial more is known of how much they differ
        self.moved = self._find_move()

    def next_load(self, first: float) -> float:
        """Return the load of the next trial; ``first`` is that of the first one.

        Until the capacity is known from both sides, it grows or shrinks: a mount is not broken by a
        load that is a thousand times what it carries.
        """
        if not self.trials:
            return first
        held, broke = self.held, self.broke
        if not broke:
            return max(held) * GROWTH
        if not held:
            return min(broke) / GROWTH
        share = BESIDE[len(self.trials) % len(BESIDE)]
        return _quantile(self.chances, share)

    @property
    def held(self) -> list[float]:
        """The loads at which all goals held."""
        return [load for load, counts in self.trials if self.holds(counts)]

    @property
    def broke(self) -> list[float]:
        """The loads at which one did not."""
        return [load for load, counts in self.trials if not self.holds(counts)]

    @property
    def is_bracketed(self) -> bool:
        """Whether a load held and another one broke."""
        return bool(self.held and self.broke)

    @property
    def interval(self) -> Interval:
        """What is believed of the capacity, of now."""
        return _interval(self.chances)

    def interval_until(self, number: int) -> Interval:
        """Return what was believed before trial ``number``."""
        return _interval(self._chances(0, number))

    def is_known(self, precision: float) -> bool:
        """Whether the interval is as narrow as a share of it, and enough trials say so.

        Of few trials some are all too lucky, and those would end a search.
        """
        goal = self.weakest() if self.is_bracketed else self.goals[0]
        least, most = _fitted(goal.share)
        place = self.goals.index(goal)
        own = self.trials[self._begin :]
        near = sum(least < counts[place].share < most for _, counts in own)
        return near >= LEAST_NEAR and self.is_bracketed and self.interval.is_within(precision)

    def weakest(self) -> Goal:
        """Return the goal that is the first to break; any of them before the first trial."""
        if not self.trials:
            return self.goals[0]
        estimates = [_quantile(self._tail(place, self._begin), 1 / 2) for place in self._places]
        return self.goals[int(np.argmin(estimates))]

    def holds(self, counts: Sequence[Counts]) -> bool:
        """Whether a trial has kept all goals, as far as it goes."""
        pairs = zip(self.goals, counts, strict=True)
        return all(each.share <= goal.share for goal, each in pairs)

    def is_clear(self, counts: Sequence[Counts]) -> bool:
        """Whether a trial that still goes on has told on which side its load lies.

        That is a sequential test, which may be asked at any time (a mixture of likelihood ratios:
        Robbins 1970). A trial whose share would be fitted goes on, as its share is then too large
        or too small by chance.
        """
        odds = [
            _odds(each, goal.share, _spread([own[place] for _, own in self.trials]))
            for place, (goal, each) in enumerate(zip(self.goals, counts, strict=True))
        ]
        return any(one > CLEAR for one in odds) or all(one < -CLEAR for one in odds)

    def _find_move(self) -> Move | None:
        """Return the trial from which on the capacity is another one; None where none is known.

        The trials before and after it are fitted by curves of their own, much better than all of
        them by one.
        """
        whole = self._best(0, len(self.trials))
        found = [
            (self._best(0, place) + self._best(place, len(self.trials)) - whole, place)
            for place in range(LEAST_TRIALS, len(self.trials) - LEAST_TRIALS + 1)
        ]
        gain, place = max(found, default=(0.0, 0))
        if gain < MOVED:
            return None
        before, after = self._chances(0, place), self._chances(place)
        return Move(place, _interval(before), _interval(after))

    @property
    def chances(self) -> Floats:
        """With which probability the capacity, of now, lies above each of ``LOADS``."""
        return self._chances(self._begin)

    @property
    def _begin(self) -> int:
        """The first trial of those that tell of the capacity of now."""
        return 0 if self.moved is None else self.moved.place

    def _chances(self, begin: int = 0, end: int | None = None) -> Floats:
        tails = [self._tail(goal, begin, end) for goal in self._places]
        return np.asarray(np.prod(tails, axis=0))

    @property
    def _places(self) -> range:
        return range(len(self.goals))

    def _tail(self, goal: int, begin: int, end: int | None = None) -> Floats:
        """Return with which probability the capacity lies above each load, by one goal alone."""
        key = (goal, begin, len(self.trials) if end is None else end)
        if key not in self._tails:
            fits = self._fit_of(*key)
            weights = np.exp(fits - fits.max()).sum(axis=1)
            self._tails[key] = 1 - np.cumsum(weights / weights.sum())
        return self._tails[key]

    def _best(self, begin: int, end: int) -> float:
        return max(float(self._fit_of(goal, begin, end).max()) for goal in self._places)

    def _fit_of(self, goal: int, begin: int, end: int) -> Floats:
        spread = _spread([counts[goal] for _, counts in self.trials])
        before = self._sums[begin - 1][goal] if begin else 0.0
        return np.asarray((self._sums[end - 1][goal] - before) / spread)


def ratio_of(one: Search, other: Search) -> Interval:
    """Return how many times as much one carries as another one: the ratio of the capacities."""
    random = np.random.default_rng(0)  # the same input, the same answer
    drawn = [np.interp(random.random(DRAWS), 1 - each.chances, LOADS) for each in (one, other)]
    low, middle, high = np.quantile(drawn[0] / drawn[1], (LOW, 1 / 2, HIGH))
    return Interval(float(middle), float(low), float(high))


def _fit(load: float, counts: Counts, allowed: float) -> Floats:
    """Return how well each pair of capacity and slope fits, were all samples independent."""
    least, most = _fitted(allowed)
    logs = log(allowed) + np.outer(load / LOADS - 1, SLOPES)
    fitted = np.exp(np.clip(logs, log(least), log(most)))
    share = min(max(counts.share, least), most)
    chances = share * np.log(fitted) + (1 - share) * np.log1p(-fitted)
    return np.asarray(counts.ended.sum() * chances)


def _fitted(allowed: float) -> tuple[float, float]:
    return LEAST_FITTED * allowed, min(MOST_FITTED * allowed, (1 + allowed) / 2)


def _odds(counts: Counts, allowed: float, spread: float) -> float:
    """Return the logarithm of how clear it is: positive above what is allowed, negative below."""
    share = counts.share
    least, most = _fitted(allowed)
    if least < share < most:
        return 0.0
    bad = float(counts.bad.sum()) / spread
    good = float(counts.ended.sum()) / spread - bad
    mixture: float = lgamma(bad + 1) + lgamma(good + 1) - lgamma(bad + good + 2)
    evidence = mixture - bad * log(allowed) - good * log(1 - allowed)
    return max(evidence, 0.0) * (1 if share > allowed else -1)


def _spread(trials: Sequence[Counts]) -> float:
    """Return how many times as much parts of trials differ as those of independent samples.

    It is more than was found, by as much as that may be too little.
    """
    found: list[Floats] = []
    expected = 0.0
    for counts in trials:
        own = counts.ended > 0
        parts = int(own.sum())
        if parts > 1 and LEAST_SHARE <= counts.share <= MOST_SHARE:
            differences = (counts.bad - counts.share * counts.ended)[own]
            found.append(differences**2 * parts / (parts - 1))
            expected += float(counts.ended.sum()) * counts.share * (1 - counts.share)
    if not expected:
        return SPREAD
    squares = np.concatenate(found)
    most = float(squares.sum() + SURE * squares.std() * squares.size**0.5)
    return max(most / expected, 1.0)


def _interval(chances: Floats) -> Interval:
    return Interval(*(_quantile(chances, share) for share in (1 / 2, LOW, HIGH)))


def _quantile(chances: Floats, share: float) -> float:
    return float(np.interp(share, 1 - chances, LOADS))
