"""What a master knows of one of its workers: values that the pool and the recorder keep."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replayer.cluster.wire import WorkerState


@dataclass(eq=False)
class Worker:
    """One worker, as the master knows it.

    Attributes:
        heard_s: When it gave its last sign of life, on this machine's monotonic clock.
        lost: Why it is lost; None while it works.
        was_lost: Every time that it was lost: its last sign of life before, and why.
        handed_over: Whether it has ended and all that it measured is here: it is missed no more.
        offset_ns: What to add to its engine's times to get the master's.
        within_ns: How exactly that is known.
        taken: The numbers of its results that are safe.
        upto_ns: Until when its results are known, on the master's clock.
        shares: Measured transactions by target and name.
        facts: What it said of its machine and targets.
        back_s: When it was back after a loss, in seconds since the run's begin.
    """

    number: int
    id: str
    hello: Mapping[str, Any]
    heard_s: float
    state: WorkerState = field(default_factory=WorkerState)
    lost: str | None = None
    was_lost: list[tuple[float, str]] = field(default_factory=list)
    handed_over: bool = False
    offset_ns: int = 0
    within_ns: int = 0
    taken: set[int] = field(default_factory=set)
    upto_ns: int = 0
    shares: dict[tuple[int, str], int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    back_s: list[float] = field(default_factory=list)
    folder: str = ""

    def __str__(self) -> str:
        return f"worker {self.number} ({self.hello['host']}, process {self.hello['pid']})"

    @property
    def leaves(self) -> str:
        """What it leaves on its targets if nobody else can remove it, in a line."""
        paths = shlex.join(each[0] for each in self.facts["paths"])
        return (
            f"{self} may have left folders behind; remove them there with: replayer clean {paths}"
        )


def users_of(number: int, workers: int, users: int) -> range:
    """Return the users that a worker runs."""
    return range(number, users, workers)
