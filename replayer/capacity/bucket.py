"""Mounts with credits: what a bucket holds, and how fast it is refilled. Pure.

A bucket of credits (EFS, gp2, t3) lets more through than is refilled, until it is empty: then only
what is refilled. How much it holds follows from what the trials themselves moved until then: all
that was served beyond the refill, since the bucket was full for the last time.

Once it is empty, what it holds is let through evenly, and all else unevenly: as much as files are
unlike each other. So bytes and calls, and what is neither, are told apart by how evenly each came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.resampling import student_quantile

__all__ = ["CONFIRM_S", "Bucket", "Kind", "Served", "find_bucket", "suspected_load"]

Floats = NDArray[np.float64]

FULL, SHORT = 0.9, 0.8
"""Chosen: of a load so much is served where nothing holds it back, and less where it is."""
LEAST_S = 3  # chosen: so many seconds at least before and after a bucket is empty
LATE_S = 10  # chosen: so many seconds tell how fast it is refilled
CONFIRM_S = 60
"""Chosen: an empty bucket serves little for so long. A mount that others slow down mostly does not:
in tests beside one, they did for two trials of 10 s."""


Kind = Literal["bytes", "reads and writes", "calls", "neither"]
"""What each credit is for. Neither: for time in which the mount works, such as CPU credits, or for
calls that a cache or read-ahead makes others than those of the users."""


@dataclass(frozen=True)
class Served:
    """What was served in a trial."""

    load: float
    """Arrivals a second."""
    at_s: Floats
    """When each interval began, since the search did."""
    lasted_s: Floats
    """How long each was."""
    done: Floats
    """How many transactions ended in each."""
    moved: Floats
    """Bytes in each."""
    calls: Floats
    """How many file calls ended in each."""
    data_calls: Floats
    """How many of those read or wrote."""

    @property
    def rates(self) -> Floats:
        """How many ended a second, in each interval."""
        return self.done / self.lasted_s


@dataclass(frozen=True)
class Bucket:
    """A bucket of credits, in transactions."""

    size: float
    refill_per_s: float
    """What is carried once it is empty: the sustained level."""
    emptied_at_s: float
    """When it became empty, since the search began."""
    kind: Kind | None
    """What it holds, as far as that can be told."""

    @property
    def refill_s(self) -> float:
        """How long it takes until it is full again, if nothing is served meanwhile."""
        return self.size / self.refill_per_s

    def lasts_s(self, load: float) -> float:
        """Return how long a full one lasts at a load, in transactions a second."""
        return self.size / (load - self.refill_per_s) if load > self.refill_per_s else np.inf


@dataclass(frozen=True)
class Emptied:
    """Where a bucket became empty."""

    trial: int
    place: int
    """The interval of that trial."""


def find_bucket(trials: Sequence[Served]) -> tuple[Bucket, int] | None:
    """Return the bucket that became empty, and the trial in which it did.

    None where what was served does not show one: from some second on less must be served than
    before, in later trials, too, though no more arrived than was served before.
    """
    ends = (_find_end(trials, number) for number in range(1, len(trials)))
    found = (_bucket(trials, end) for end in ends if end is not None)
    return next(filter(None, found), None)


def suspected_load(trials: Sequence[Served]) -> float | None:
    """Return the load at which to try again whether the last trial has emptied a bucket."""
    last = len(trials) - 1
    if last < 1 or _find_end(trials, last) is None:
        return None
    return _most_served(trials[:last]) or None


def _bucket(trials: Sequence[Served], end: Emptied) -> tuple[Bucket, int] | None:
    served = _most_served(trials[: end.trial])
    later = [each for each in trials[end.trial + 1 :] if each.load <= served]
    # The next one decides: a mount that is asked for too much may serve less, and recover at once,
    # and one that others slow down recovers when they end.
    if not later or not _stays_short(later[0]):
        return None
    short, place = [each for each in later if _is_short(each)], end.place
    late = np.concatenate([trials[end.trial].rates[place:], *(each.rates for each in short)])
    if late.size < LATE_S:
        return None
    # The middle one: in the first second of each trial what came meanwhile is served.
    after = np.concatenate([each.rates for each in short])
    refill = float(np.median(late if after.size < LATE_S else after))
    if np.median(trials[end.trial].rates[place:]) > MORE * refill:
        place = _fall(trials[end.trial], (refill + served) / 2)
    until_s = float((trials[end.trial].at_s + trials[end.trial].lasted_s)[place - 1])
    if place == 0:
        until_s = float(trials[end.trial].at_s[0])
    size = _missing(trials, refill, until_s)
    if size <= 0 or refill <= 0:
        return None
    empty = [(trials[end.trial], place), *((each, 0) for each in short)]
    return Bucket(size, refill, until_s, find_kind(empty)), end.trial


MORE = 1.5
"""Chosen: a trial of which the rest is served so many times what later ones are was not empty yet,
but asked for more than is carried."""


def _fall(trial: Served, level: float) -> int:
    """Return from which interval on less than a level is served."""
    above = np.flatnonzero(trial.rates > level)
    return int(above[-1]) + 1 if above.size else 0


def find_kind(short: Sequence[tuple[Served, int]]) -> Kind | None:
    """Return what came evenly in trials while a bucket was empty, from an interval on in each.

    None where that is more than one: files that are all alike, or too few seconds. Variances are
    compared in pairs (E. J. G. Pitman, 'A note on normal correlation', Biometrika 1939).
    """
    moved, data_calls, calls = (
        np.concatenate([_settled(each, getattr(each, name), place) for each, place in short])
        for name in ("moved", "data_calls", "calls")
    )
    if moved.size < LATE_S or not moved.any():
        return None
    sure = student_quantile(CHANCE, moved.size - 2)
    counts: dict[Kind, Floats] = {"calls": calls, "reads and writes": data_calls}
    beyond = {kind: _varies_more(moved, own) for kind, own in counts.items()}
    uneven = {kind: _dispersion(own) for kind, own in counts.items()}
    if max(beyond.values()) < -sure:
        return "bytes"
    least = min(uneven.values())
    if least > UNEVEN and min(beyond.values()) > (0 if least < BY_CHANCE else sure):
        return "neither"
    even = (kind for kind in counts if uneven[kind] <= EVEN and beyond[kind] > sure)
    return next(even, None)


CHANCE = 0.02
"""Chosen: that bytes vary more, or less, than calls by chance alone, to both sides together."""
EVEN, UNEVEN, BY_CHANCE = 0.2, 0.3, 1.5
"""Chosen: the variance of what is counted to its mean. It is 1 where calls end by chance, and more
where bytes come evenly and files differ much. Of ten seconds of chance 1 in 150 is below 0.2."""
REGAINED = 2  # chosen: in the first seconds of a trial what came meanwhile is served


def _settled(trial: Served, amounts: Floats, place: int) -> Floats:
    """Return how much came a second, without the first ones and the last one, which is shorter."""
    found: Floats = (amounts / trial.lasted_s)[place + REGAINED : -1]
    return found


def _varies_more(first: Floats, second: Floats) -> float:
    """Return by how many standard deviations one varies more than the other, each by its mean."""
    first, second = first / first.mean(), second / max(second.mean(), 1e-9)
    both, apart = first + second, first - second
    spread = float(both.std() * apart.std())
    if not spread:
        return 0.0  # they go together
    related = float(((both - both.mean()) * (apart - apart.mean())).mean()) / spread
    return float(related * ((first.size - 2) / max(1 - related**2, 1e-12)) ** 0.5)


def _dispersion(counts: Floats) -> float:
    return float(counts.var(ddof=1) / max(counts.mean(), 1e-9))


def _most_served(trials: Sequence[Served]) -> float:
    return max((each.load for each in trials if _is_full(each)), default=0.0)


def _is_full(trial: Served) -> bool:
    return float(np.median(trial.rates)) >= FULL * trial.load


def _is_short(trial: Served) -> bool:
    return float(np.median(trial.rates)) < SHORT * trial.load


def _stays_short(trial: Served) -> bool:
    """Whether it is short to the end: at its begin what came meanwhile is served."""
    parts = np.array_split(trial.rates, max(trial.rates.size // LATE_S, 1))
    return all(np.median(part) < SHORT * trial.load for part in parts[1:] or parts)


def _find_end(trials: Sequence[Served], number: int) -> Emptied | None:
    """Return from which second on a trial is served less than one before it: two levels fit."""
    rates, load = trials[number].rates, trials[number].load
    most = _most_served(trials[:number])
    places = range(LEAST_S, rates.size - LEAST_S + 1)
    if not places:
        return None
    errors = [rates[:at].var() * at + rates[at:].var() * (rates.size - at) for at in places]
    place = places[int(np.argmin(errors))]
    if rates[:place].mean() < FULL * min(load, most):
        place = 0  # it was empty when this one began
    return Emptied(number, place) if np.median(rates[place:]) < SHORT * min(load, most) else None


def _missing(trials: Sequence[Served], refill: float, until_s: float) -> float:
    """Return how much the bucket lacks at a time; it is full at the begin, and never fuller."""
    missing, now_s = 0.0, 0.0
    for trial in trials:
        for at_s, lasted_s, done in zip(trial.at_s, trial.lasted_s, trial.done, strict=True):
            if at_s >= until_s:
                break
            missing = max(missing - refill * (float(at_s) - now_s), 0.0)
            missing = max(missing + float(done) - refill * float(lasted_s), 0.0)
            now_s = float(at_s + lasted_s)
    return missing
