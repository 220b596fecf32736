"""What was measured in an interval, whoever counted it: one engine, or the workers' together.

The engine's own values have this form already; those here are made of what workers sent. Nothing is
added up here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from replayer._native import Histogram

__all__ = ["MadeInterval", "MadeRow", "MeasuredInterval", "MeasuredRow", "Phase"]

Phase = Literal["warm-up", "measured"]


class MeasuredRow(Protocol):
    """What was measured of one key in one interval; see the engine's ``Row``."""

    @property
    def target(self) -> int:
        """Its index."""

    @property
    def round(self) -> int:
        """From 0."""

    @property
    def phase(self) -> Phase:
        """Whether it counts."""

    @property
    def transaction(self) -> str:
        """The name."""

    @property
    def op(self) -> str:
        """An op, or a time of transactions."""

    @property
    def outcome(self) -> str:
        """How it ended."""

    @property
    def expected(self) -> bool:
        """False when it counts as an error."""

    @property
    def bytes(self) -> int:
        """Moved."""

    @property
    def histogram(self) -> Histogram:
        """Its times."""


class MeasuredInterval(Protocol):
    """One second, or what is left of one at a boundary."""

    @property
    def start_ns(self) -> int:
        """Since the run's begin."""

    @property
    def end_ns(self) -> int:
        """Since the run's begin."""

    @property
    def users(self) -> int:
        """Users running at its end."""

    @property
    def rows(self) -> Sequence[MeasuredRow]:
        """One for each key."""


@dataclass(frozen=True)
class MadeRow:
    """A row that was sent, or the sum of several."""

    target: int
    round: int
    phase: Phase
    transaction: str
    op: str
    outcome: str
    expected: bool
    bytes: int
    histogram: Histogram


@dataclass(frozen=True)
class MadeInterval:
    """An interval that was sent, or the sum of several."""

    start_ns: int
    end_ns: int
    users: int
    rows: Sequence[MeasuredRow]
