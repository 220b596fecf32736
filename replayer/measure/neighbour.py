"""The form of a load that ran beside the measured one, on the same targets.

Frozen values only, part of run.json. The run fills them; the verdict and reports read them.
"""

from replayer.measure.facts import Frozen
from replayer.measure.units import format_rate

BEHIND_SHARE = 0.1
"""Chosen: who does a tenth less than was asked for is another neighbour."""
FAILED_SHARE = 0.1
"""Chosen, as above: what fails is another load than what succeeds."""


def say_neighbour(name: str, rate_per_s: float | None) -> str:
    """Return the name of a neighbour with the rate that was given."""
    return name if rate_per_s is None else f"{name} at {format_rate(rate_per_s)}"


class Pair(Frozen):
    """The two settings of a target, by their indices among the run's targets."""

    alone: int
    beside: int


class Done(Frozen):
    """What the neighbour did in one setting, in all its turns.

    Each begins before the measured load, and ends after it.
    """

    target: int
    """Index of the setting."""
    turns: int
    seconds: float
    transactions: int
    """All that ended, failed ones too."""
    errors: int
    unbegun: int
    """Arrivals that never began, as all its users were busy."""
    rate_per_s: float | None
    """Of those that ended; null: it was measured for no time."""
    p95_ns: int | None
    """Of all that succeeded, from when they were due; null: too few."""


class Neighbour(Frozen):
    """Which load ran beside the measured one, and what it did."""

    name: str
    scenario: str
    """Its file or name, as it was given."""
    rate_per_s: float | None
    """Arrivals; null: its scenario's own pace."""
    pairs: tuple[Pair, ...]
    done: tuple[Done, ...] = ()
    """Of each setting beside it that had a turn; empty until the run ends."""

    @property
    def says(self) -> str:
        """Its name, with its rate if that was given: ``uploads at 20/s``."""
        return say_neighbour(self.name, self.rate_per_s)

    def done_in(self, target: int) -> Done | None:
        """Return what it did in a setting; None: it had no turn there."""
        return next((done for done in self.done if done.target == target), None)


def why_not_as_asked(done: Done) -> str | None:
    """Say why a neighbour was not the one that was asked for; None: it was."""
    succeeded, due = done.transactions - done.errors, done.transactions + done.unbegun
    if succeeded <= 0:
        return "no transaction of it succeeded"
    if done.errors > FAILED_SHARE * done.transactions:
        return f"{done.errors:,} of its {done.transactions:,} transactions failed"
    if done.unbegun > BEHIND_SHARE * due:
        return f"{done.unbegun:,} of its {due:,} arrivals never started: its users were busy"
    return None
