"""What a run asks of whoever starts its users and stops them: Locust, which is not named here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from replayer._native import Engine, Interval
from replayer.measure.clients import TaskFailure, UserKind
from replayer.plan.document import Plan
from replayer.run.doorbell import Mailbox, TransactionListeners
from replayer.run.user_registry import UserRegistry


@dataclass(frozen=True)
class UserContext:
    """What the users of a run share."""

    engine: Engine
    registry: UserRegistry
    mailbox: Mailbox
    targets: int

    def target_of(self, number: int) -> int:
        """Return the target that a user written in Python is dealt."""
        return number % self.targets


class RunStatistics(TransactionListeners, Protocol):
    """The statistics of whoever starts the users."""

    def merge(self, interval: Interval) -> None:
        """Add what one interval measured."""

    def task_failures(self) -> tuple[TaskFailure, ...]:
        """Return what tasks of users raised until now, and which of their requests failed."""

    def release(self) -> None:
        """Take nothing more from this run."""


class Spawner(Protocol):
    """Starts the users of one run."""

    stop_timeout_s: float

    is_shaped: bool
    """Whether a load shape decides how many users there are."""
    has_scenario_users: bool
    """Whether users of the scenario take part."""
    has_file_users: bool
    """Whether users take part whose Python tasks name transactions."""
    has_python_users: bool
    """Whether users with Python tasks take part. The engine cannot stop them."""

    @property
    def user_kinds(self) -> tuple[UserKind, ...]:
        """How many users of each kind there were at most, where a locustfile brought some."""

    @property
    def shape_failures(self) -> tuple[TaskFailure, ...]:
        """What the load shape has raised, which ends it."""

    @property
    def has_all(self) -> bool:
        """Whether all users are started, or all of this stage of a load shape."""

    def note_all(self) -> None:
        """Note that all users are started."""

    def refuse_mixtures(self, plan: Plan, targets: int, rounds: int) -> None:
        """Refuse a plan, or turns, that the users cannot take part in.

        Raises:
            ReplayerError: With what can be done instead.
        """

    def connect(self, context: UserContext) -> None:
        """Let the users of this process find their run."""

    def open_statistics(self, begin_epoch_ns: int, targets: tuple[str, ...]) -> RunStatistics:
        """Fill the statistics from now on; times of the engine count from a wall-clock time."""

    def check(self) -> None:
        """Refuse to go on where users that were asked for are not started.

        Raises:
            ReplayerError: What was raised, and where.
        """

    def native_users(self, counts: Mapping[str, int] | None = None) -> int:
        """Return how many of these users, by class, have native threads; None: of this process."""

    def stop_users(self) -> None:
        """Stop the users; the run goes on."""

    def end_test(self) -> None:
        """End the test, as its last segment has ended."""
