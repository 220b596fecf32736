"""The three minutes of a quick study: shared among its steps as they turn out to need them.

A step takes longer than it measures: a program starts, files are laid out and removed. How much
longer is learned from the steps before it, and first from how long this program took to start.
"""

import os
import time
from dataclasses import dataclass, field

from replayer.measure import this_process
from replayer.study.commands import LONGEST_QUICK_S, QUICK_S, TURN_S

__all__ = ["Budget", "Share", "quick_budget"]

RESERVE_S = 8.0  # chosen: for the removal at the end of the last step
MARGIN = 0.9  # chosen: of a step's share; the rest is for what cannot be foreseen
STARTS = 2.0  # chosen: a step starts a program, and works out a report at its end


@dataclass(frozen=True)
class Share:
    """What a step may take.

    Attributes:
        limit_s: All of it; then it is asked to end.
        seconds: Measuring each target.
    """

    limit_s: float
    seconds: int


@dataclass
class Budget:
    """What is left of the time.

    Attributes:
        end: When the last step must have ended, on the monotonic clock.
        targets: How many targets each step measures.
        beside_s: How long a step is expected to take beside measuring.
    """

    end: float
    targets: int
    beside_s: float
    _least_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._least_s = self.beside_s

    def share(self, steps: int) -> Share:
        """Return the share of the next of so many steps that are left."""
        limit_s = max(self.end - time.monotonic(), 0.0) / max(steps, 1) * MARGIN
        seconds = int((limit_s - self.beside_s) / self.targets)
        return Share(limit_s, max(1, min(seconds, LONGEST_QUICK_S)))

    def learn(self, share: Share, took_s: float) -> None:
        """Note how long a step took in all."""
        self.beside_s = max(took_s - share.seconds * self.targets, self._least_s)


def quick_budget(targets: int) -> Budget:
    """Return the budget of a quick study that begins now, counted from this process's start."""
    used_s = _age_s()
    end = time.monotonic() + QUICK_S - 2 * used_s - RESERVE_S
    return Budget(end, targets, max(TURN_S * targets, STARTS * used_s))


def _age_s() -> float:
    """Return how long ago this process started: what its imports take, another's take too."""
    began_s = this_process().start_ticks / os.sysconf("SC_CLK_TCK")
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - began_s, 0.0)
