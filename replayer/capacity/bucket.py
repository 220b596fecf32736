"""Mounts with credits: what a bucket holds, and how fast it is refilled. Pure.

A bucket of credits (EFS, gp2, t3) lets more through than is refilled, until it is empty: then only
what is refilled. How much it holds follows from what the trials themselves moved until then: all
that was served beyond the refill, since the bucket was full for the last time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bucket", "Served", "find_bucket", "suspected_load"]

Floats = NDArray[np.float64]

FULL, SHORT = 0.9, 0.8
"""Chosen: of a load so much is served where nothing holds it back, and less where it is."""
LEAST_S = 3  # chosen: so many seconds at least before and after a bucket is empty
LATE_S = 10  # chosen: so many seconds tell how fast it is refilled


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
    return _most_served(trials[:last])


def _bucket(trials: Sequence[Served], end: Emptied) -> tuple[Bucket, int] | None:
    served = _most_served(trials[: end.trial])
    later = [each for each in trials[end.trial + 1 :] if each.load <= served]
    if not any(map(_is_short, later)):
        return None
    rates = [trials[end.trial].rates[end.place :]]
    rates += [each.rates for each in later if _is_short(each)]
    late = np.concatenate(rates)
    if late.size < LATE_S:
        return None
    # The middle one: in the first second of each trial what came meanwhile is served.
    refill, until_s = float(np.median(late)), float(trials[end.trial].at_s[end.place])
    size = _missing(trials, refill, until_s)
    return (Bucket(size, refill, until_s), end.trial) if size > 0 and refill > 0 else None


def _most_served(trials: Sequence[Served]) -> float:
    return max((each.load for each in trials if _is_full(each)), default=0.0)


def _is_full(trial: Served) -> bool:
    return float(np.median(trial.rates)) >= FULL * trial.load


def _is_short(trial: Served) -> bool:
    return float(np.median(trial.rates)) < SHORT * trial.load


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
