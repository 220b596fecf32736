"""Slow changes of a series: drift over the whole run, and rounds that begin slowly.

Drift rises or falls all the way, without steps. Its size is the slope of Theil and Sen. The test is
Mann and Kendall's; the autocorrelation of the rest widens its variance, as by Yue and Wang, 'The
Mann-Kendall test modified by effective sample size' (Water Resources Management 2004).

The first touch is slow on file systems that fetch on the first use (caches, EFS, snapshots restored
on demand) and with connections that are made late. ``exceedance`` says how unlikely a value is,
given the tail of others: Hill's estimate of a power-law tail (B. M. Hill, 'A simple general
approach to inference about the tail of a distribution', Annals of Statistics 1975). For lighter
tails the chance comes out too high, never too low.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.finding import FirstTouch
from replayer.analysis.slots import IntervalSeries
from replayer.measure.record import RunRecord

TAIL_SHARE = 0.1  # chosen: the tenth of the values that are its tail
FEWEST_OF_TAIL = 5  # values of a tail, at least: chosen
FLOOR = 0.02  # chosen: values are not told apart below 2 %


def exceedance(values: NDArray[np.float64], value: float) -> float:
    """Return the chance that one more value like these is at least as high as ``value``.

    From their ranks within the range of the values, from a power law beyond it. All are positive.
    """
    ranked = np.sort(values)
    above = int((ranked >= value).sum())
    if above:
        return (above + 1) / (ranked.size + 1)
    tail = max(int(ranked.size * TAIL_SHARE), FEWEST_OF_TAIL)
    if ranked.size <= tail:
        return 1 / (ranked.size + 1)
    begin = max(float(ranked[-tail - 1]), np.finfo(np.float64).tiny)
    mean_excess = max(float(np.log(ranked[-tail:] / begin).mean()), FLOOR)
    beyond = tail / ranked.size * (value / begin) ** (-1 / mean_excess)
    return float(min(beyond, 1 / (ranked.size + 1)))


Floats = NDArray[np.float64]

SHORTEST = 30  # values: chosen, below that a drift and a bad start look alike
MOST_POINTS = 240  # chosen: longer series are averaged to this many
LEAST_FACTOR = 1.25  # chosen: a quarter over the whole run
CRITICAL = 6.0
"""Chosen: standard deviations. 16,000 simulated series of noise without drift (normal, Pareto, two
groups, spikes, autoregressive up to 0.9; 30 and 120 values long) gave no alarm."""
SURE = 2.576
"""Standard deviations of the interval of a slope: 99 %. Of 400 simulated series of each of 9 kinds
of noise (30, 60, 240 values long; autoregressive up to 0.95) it lay above 10 % for at most 3 of 100
without a drift, and below 10 % for at most 3 of 100 with one of 20 %."""


@dataclass(frozen=True)
class Slope:
    """The line through a series: its two ends, and how sure it rises or falls."""

    begin: float
    end: float
    low: float
    """The factor between the ends is at least this, and at most ``high``."""
    high: float
    score: float
    """How many standard deviations Kendall's S is from that of no slope."""

    @property
    def factor(self) -> float:
        """The end to the begin: above 1 is slower."""
        return self.end / self.begin


def find_slope(values: Floats) -> Slope | None:
    """Return the line of a series that drifts; None for one that does not."""
    slope = measure_slope(values)
    if slope is None or abs(np.log(slope.factor)) < np.log(LEAST_FACTOR):
        return None
    return slope if slope.score >= CRITICAL else None


def measure_slope(values: Floats) -> Slope | None:
    """Return the line of a series, whether it drifts or not; None for one that is too short.

    The interval is Sen's, of the ranked slopes between all pairs of values ('Estimates of the
    regression coefficient based on Kendall's tau', JASA 1968).
    """
    if values.size < SHORTEST:
        return None
    logs = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    if logs.size > MOST_POINTS:
        logs = np.array([part.mean() for part in np.array_split(logs, MOST_POINTS)])
    steps = np.arange(logs.size)
    first, second = np.triu_indices(logs.size, 1)
    rises = logs[second] - logs[first]
    slopes = np.sort(rises / (second - first))
    slope = float(np.median(slopes))
    rest = logs - slope * steps
    deviation = _deviation(logs.size, _autocorrelation(rest))
    beyond = int((slopes.size - SURE * deviation) / 2)
    low, high = slopes[[beyond, -1 - beyond]] if beyond >= 0 else (-np.inf, np.inf)
    middle, length = float(np.median(rest)), logs.size - 1
    return Slope(
        begin=float(np.exp(middle)),
        end=float(np.exp(middle + slope * length)),
        low=float(np.exp(low * length)),
        high=float(np.exp(high * length)),
        score=abs(float(np.sign(rises).sum())) / deviation,
    )


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


FEWEST_LATER = 6  # intervals after the first one, in each round: fewer have no tail to judge by
FIRST_TOUCH_FACTOR = 1.5  # chosen
CHANCE = 1e-5
"""Chosen: that rounds without such a penalty would look like this. Each of them must be as unlikely
as its share: one round that began with a spike proves nothing of the others."""


def find_first_touches(record: RunRecord, series: Sequence[IntervalSeries]) -> Iterator[FirstTouch]:
    """Yield what was slower in the first interval of its rounds than after it."""
    names = {target.index: target.name for target in record.run.targets}
    for one in series:
        rounds = [one.kept(one.rounds == number) for number in np.unique(one.rounds)]
        rounds = [part for part in rounds if part.counts.size > FEWEST_LATER]
        if rounds and begins_slowly([part.means_ns for part in rounds]):
            yield from _judged(names[one.target], one, rounds)


def begins_slowly(rounds: Sequence[Floats]) -> bool:
    """Whether the first value of every round stands out from those after it."""
    chance = CHANCE ** (1 / len(rounds))
    return all(exceedance(values[1:], float(values[0])) <= chance for values in rounds)


def _judged(
    target: str, series: IntervalSeries, rounds: Sequence[IntervalSeries]
) -> Iterator[FirstTouch]:
    first = _middle([float(part.means_ns[0]) for part in rounds])
    later = _middle([float(np.median(part.means_ns[1:])) for part in rounds])
    if first >= FIRST_TOUCH_FACTOR * later:
        yield FirstTouch(
            target=target,
            subject=series.subject,
            kind=series.kind,
            first_ns=first,
            later_ns=later,
            factor=first / later,
            rounds=len(rounds),
            over_s=float(np.mean([part.end_s[0] - part.start_s[0] for part in rounds])),
        )


def _middle(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(values).mean()))
