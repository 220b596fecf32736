"""What is known of the targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replayer.capacity.bucket import Bucket, Served, find_bucket, suspected_load
from replayer.capacity.order import Load
from replayer.capacity.search import LEAST, Interval, Search, ratio_of
from replayer.measure.summary import TransactionSummary
from replayer.run.targets import NamedTarget

__all__ = ["Found", "Point", "rank"]

MOST_USERS = 10_000  # as -u
CLIENT_TRIES = 3  # chosen: so often the client may run out, at smaller and smaller loads


@dataclass(frozen=True)
class Point:
    """What one trial measured: a point of the curve."""

    load: float
    holds: bool
    is_of_client: bool
    """Whether the client was at its end: the trial says nothing of the target."""
    at_s: float
    """When it began, since the search did."""
    seconds: float
    """How long it was."""
    transaction: TransactionSummary | None
    """The one of the goal that breaks first; None if none ended."""
    folder: Path
    """The trial's run folder."""
    slowest: str | None
    """The op in which most of its time passed."""


@dataclass(frozen=True)
class LookedFor:
    """How much all trials of a target moved in which no credits ran out."""

    seconds: float
    bytes: float


@dataclass
class Found:
    """What is known of one target."""

    target: NamedTarget
    search: Search
    users: int
    """Threads that serve arrivals."""
    points: list[Point] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)
    """What was served in each trial that says something of the target."""
    bucket: Bucket | None = None
    """The credits that it turned out to have."""
    burst: Interval | None = None
    """The capacity while there are credits."""
    kept: str | None = None
    """The target's folder, laid out for further trials."""
    failure: str | None = None
    """Why no further trial can be made."""
    alone: "Found | None" = None
    """The same target without the neighbour beside which this is; None: this is without."""
    is_spoiled: bool = False
    """Whether the neighbour was not as asked, as the failure says: there is no capacity then."""
    goes_on: bool = False
    """Whether more trials may follow."""
    most_users: int = MOST_USERS
    """How many threads there can be: the files of a scenario may be too few for more."""

    @property
    def client_loads(self) -> list[float]:
        """Loads at which the client, not the target, was at its end."""
        return [point.load for point in self.points if point.is_of_client]

    @property
    def ran_out(self) -> bool:
        """Whether the client runs out before the target does."""
        return len(self.client_loads) >= CLIENT_TRIES

    @property
    def interval(self) -> Interval | None:
        """The capacity, as far as it is known; of now, where it has moved."""
        hidden = self.ran_out or self.is_spoiled
        return self.search.interval if self.search.is_bracketed and not hidden else None

    @property
    def loss(self) -> Interval | None:
        """How many times as much the target carries without the neighbour; None: not known."""
        if self.alone is None or None in {self.alone.interval, self.interval}:
            return None
        return ratio_of(self.alone.search, self.search)

    def find_bucket(self, load: Load) -> None:
        """Look whether the last trial shows that the target has credits."""
        if load is not Load.ARRIVALS:
            return
        found = find_bucket(self.served)
        if found is not None:
            self.bucket, number = found
            self.burst = self.search.interval_until(number)

    @property
    def bytes_of_bucket(self) -> float | None:
        """How many bytes its transactions move until a full bucket is empty."""
        return self._in_bucket(sum(each.moved.sum() for each in self.served))

    @property
    def calls_of_bucket(self) -> float | None:
        """How many file calls its transactions make until a full bucket is empty."""
        return self._in_bucket(sum(each.calls.sum() for each in self.served))

    def _in_bucket(self, total: float) -> float | None:
        done = sum(each.done.sum() for each in self.served)
        return None if self.bucket is None or not done else float(self.bucket.size * total / done)

    def credits_looked_for(self, load: Load) -> LookedFor | None:
        """How much was served without showing credits; None: they showed, or were not looked for.

        Where the capacity has moved, something was spent, though not how much.
        """
        if not self.served or self.bucket is not None or self.search.moved is not None:
            return None
        if load is not Load.ARRIVALS:
            return None
        return LookedFor(
            seconds=float(sum(each.lasted_s.sum() for each in self.served)),
            bytes=float(sum(each.moved.sum() for each in self.served)),
        )

    def credits_last_s(self, load: float) -> float | None:
        """Return how long full credits last at a load; infinite: for good; None: it has none.

        More than the mount carries with credits is not served, and so not spent.
        """
        if self.bucket is None or self.burst is None:
            return None
        return self.bucket.lasts_s(min(load, self.burst.estimate))

    @property
    def moved_at_s(self) -> float | None:
        """Since when its capacity is another one, counted from the begin of the search."""
        told = [point.at_s for point in self.points if not point.is_of_client]
        return None if self.search.moved is None else told[self.search.moved.place]

    @property
    def slowest(self) -> str | None:
        """The op that took most of the time at the lowest load that broke."""
        broke = [point for point in self.points if not point.holds and not point.is_of_client]
        lowest = min(broke, key=lambda point: point.load, default=None)
        return None if lowest is None else lowest.slowest

    def suspected_load(self, load: Load) -> float | None:
        """Return at which load to try again whether its credits are spent; None: they seem not."""
        looks = load is Load.ARRIVALS and self.bucket is None
        return suspected_load(self.served) if looks else None

    def next_load(self, load: Load) -> float:
        """Return the load of the next trial, below those for which this client is too small."""
        suspected = self.suspected_load(load)
        if suspected is not None:
            return suspected
        next_load = self.search.next_load(load.first)
        if self.client_loads:
            held = max(self.search.held, default=LEAST)
            next_load = min(next_load, float((held * min(self.client_loads)) ** 0.5))
        return float(max(round(next_load), 1)) if load is Load.USERS else next_load

    def is_known(self, precision: float) -> bool:
        """Whether the interval is as narrow as was asked for."""
        if self.burst is not None:
            return self.burst.is_within(precision)
        return not self.ran_out and self.search.is_known(precision)


def rank(found: Sequence[Found]) -> list[tuple[Found, Interval | None]]:
    """Return the targets, the largest capacity first, and how many times theirs the first has."""
    first, *others = sorted(found, key=_estimate, reverse=True)
    ratios = [
        None if None in {first.interval, one.interval} else ratio_of(first.search, one.search)
        for one in others
    ]
    return [(first, None), *zip(others, ratios, strict=True)]


def _estimate(one: Found) -> float:
    interval = one.interval
    return max(one.search.held, default=0.0) if interval is None else interval.estimate
