"""First touch: whether rounds begin slower than they go on.

File systems that fetch on the first use (caches, EFS, snapshots restored on demand) do, and so do
connections that are made late.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.finding import FirstTouch
from replayer.analysis.series import Series
from replayer.analysis.tails import exceedance
from replayer.measure import RunRecord

__all__ = ["begins_slowly", "find_first_touches"]

Floats = NDArray[np.float64]

FEWEST_LATER = 6  # intervals after the first one, in each round: fewer have no tail to judge by
LEAST_FACTOR = 1.5  # chosen
CHANCE = 1e-5
"""Chosen: that rounds without such a penalty would look like this. Each of them must be as unlikely
as its share: one round that began with a spike proves nothing of the others."""


def find_first_touches(record: RunRecord, series: Sequence[Series]) -> Iterator[FirstTouch]:
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


def _judged(target: str, series: Series, rounds: Sequence[Series]) -> Iterator[FirstTouch]:
    first = _middle([float(part.means_ns[0]) for part in rounds])
    later = _middle([float(np.median(part.means_ns[1:])) for part in rounds])
    if first >= LEAST_FACTOR * later:
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
