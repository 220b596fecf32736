"""What a search is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from replayer.capacity.goals import Goal
from replayer.capacity.search import Interval
from replayer.measure.units import format_many, format_number
from replayer.report.cost import Prices
from replayer.run.neighbour import CheckedNeighbour
from replayer.run.targets import NamedTarget, add_settings

__all__ = ["CapacityOrder", "Load"]

SHORTEST_S, LONGEST_S = 10, 60  # chosen: a trial
BAD_ONES = 50  # chosen: as many as a goal allows, of a trial, if it is not too long
LIMITS = 500  # measured with a queue: what it remembers is short beside so many limits
FEW_LIMITS = 50  # chosen: of loads that are four times each other


class Load(Enum):
    """What a load is a number of."""

    ARRIVALS = "arrivals"
    """Transactions that arrive in a second, whatever became of those before: an open loop."""
    USERS = "users"
    """Users that each wait for what they began, and think as the scenario says: a closed loop."""

    @property
    def first(self) -> float:
        """The load of the first trial: little for any mount, and enough for a first answer."""
        return 10.0 if self is Load.ARRIVALS else 2.0

    def written(self, load: float) -> str:
        """Return a load in words: ``212/s``, ``64 users``."""
        if self is Load.ARRIVALS:
            return f"{format_number(load)}/s"
        return format_many(round(load), "user")

    def between(self, interval: Interval) -> str:
        """Return an interval in words: ``212/s (198 to 221)``."""
        low, high = map(format_number, (interval.low, interval.high))
        return f"{self.written(interval.estimate)} ({low} to {high})"


@dataclass(frozen=True)
class CapacityOrder:
    """What was asked for."""

    scenario: str
    """Or a trace, if ``requests`` are given."""
    requests: Sequence[str] | None
    """The labels of a trace's requests, with their weights; none: all of them."""
    targets: Sequence[NamedTarget]
    goals: Sequence[Goal]
    load: Load
    precision: float
    """How near both bounds of an interval must be to the estimate, as a share of it."""
    budget_s: int
    """For all trials of all targets together."""
    users: int
    """Threads that serve arrivals, at first."""
    words: Sequence[str]
    """More words of ``replayer run``."""
    prices: Prices | None
    output: Path
    quiet: bool
    neighbour: CheckedNeighbour | None = None
    """What runs beside each second setting of a target; None: all are measured alone."""

    @property
    def settings(self) -> Sequence[NamedTarget]:
        """What a capacity is looked for of: targets or, with a neighbour, each alone and beside it.

        Raises:
            TargetError: Another target has the name of a second setting.
        """
        if self.neighbour is None:
            return self.targets
        return add_settings(self.targets, self.neighbour.order.name)

    def seconds(self, load: float, *, is_bracketed: bool) -> int:
        """Return how long a trial is, at most; a short one tells on which side a load lies."""
        wished = 0.0  # of users nobody knows yet how many transactions they make
        if self.load is Load.ARRIVALS and is_bracketed:
            wished = max(BAD_ONES / goal.share / load for goal in self.goals)
        limits = LIMITS if is_bracketed else FEW_LIMITS
        queues = max(limits * (goal.limit_ns or 0) / 1e9 for goal in self.goals)
        return round(min(max(wished, queues, SHORTEST_S), LONGEST_S))
