"""What a master knows of one of its workers: values that the pool and the recorder keep."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replayer.cluster.wire import WorkerState


@dataclass(eq=False)
class Worker:
    """One worker, as the master knows it."""

    number: int
    id: str
    hello: Mapping[str, Any]
    heard_s: float
    """When it gave its last sign of life, on this machine's monotonic clock."""
    state: WorkerState = field(default_factory=WorkerState)
    lost: str | None = None
    """Why it is lost; None while it works."""
    was_lost: list[tuple[float, str]] = field(default_factory=list)
    """Every time that it was lost: its last sign of life before, and why."""
    handed_over: bool = False
    """Whether it has ended and all that it measured is here: it is missed no more."""
    offset_ns: int = 0
    """What to add to its engine's times to get the master's."""
    within_ns: int = 0
    """How exactly that is known."""
    taken: set[int] = field(default_factory=set)
    """The numbers of its results that are safe."""
    upto_ns: int = 0
    """Until when its results are known, on the master's clock."""
    shares: dict[tuple[int, str], int] = field(default_factory=dict)
    """Measured transactions by target and name."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What it said of its machine and targets."""
    back_s: list[float] = field(default_factory=list)
    """When it was back after a loss, in seconds since the run's begin."""
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
