"""Who makes the load that the controller leads: the engine of this process, or workers elsewhere.

The controller knows a client by this protocol alone, so that a run on several machines has the same
phases as one in a single process.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import gevent
from locust.env import Environment
from locust.runners import LocalRunner

from replayer._native import Stuck
from replayer.locust.shapes import SpawnWatch
from replayer.locust.users import count_native
from replayer.run.client_health import ClientHealth
from replayer.run.doorbell import ResultPump
from replayer.run.ledger import Ledger, is_transaction
from replayer.run.prepared_run import PreparedRun
from replayer.run.progress import Hang
from replayer.run.schedule import ScheduledSegment
from replayer.run.threads import call_in_thread
from replayer.run.user_registry import UserRegistry

__all__ = ["EngineClient", "LoadClient", "hang_of", "poll"]

POLL_S = 0.05
SETTLE_S = 5.0  # chosen: the recorder hands over an interval within its own length


class LoadClient(Protocol):
    """All that a controller asks for.

    Attributes:
        targets: Their names.
        ledger: What was measured so far.
    """

    targets: tuple[str, ...]
    ledger: Ledger

    def prepare(self, segment: ScheduledSegment) -> None:
        """Lay out what the segment needs, and bring the caches into their state."""

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        """Let the users run: they begin nothing more when the segment's time is over."""

    def end_warm_up(self) -> None:
        """Measure from now on."""

    def open_gauge(self) -> None:
        """A measured phase begins."""

    def close_gauge(self) -> None:
        """It has ended."""

    def stop_users(self) -> None:
        """Have Locust stop its users."""

    def end(self, grace_ns: int) -> None:
        """End the segment: users finish within the grace, are cancelled, or are given up on."""

    def check(self) -> None:
        """Raise what keeps the run from having been as it should."""

    def watch(self) -> None:
        """Raise what must end the run at once."""

    def expected_users(self) -> int:
        """Return how many users Locust runs that have a thread each."""

    def running_users(self) -> int:
        """Return how many users have a thread."""

    def busy_users(self) -> int:
        """Return how many users have more to do in this segment."""

    def stuck_users(self) -> int:
        """Return how many users hang in the kernel for good."""

    def hanging(self) -> tuple[Hang, ...]:
        """Return the calls that do not come back."""

    def settle(self) -> None:
        """Carry all that was measured, after the last segment."""


class EngineClient:
    """The engine of this process, its users and its targets.

    Attributes:
        given_up: Users that hang in the kernel.
    """

    def __init__(
        self,
        session: PreparedRun,
        environment: Environment,
        registry: UserRegistry,
        gauge: ClientHealth,
    ) -> None:
        self.targets = tuple(target_dir.target.name for target_dir in session.target_dirs)
        self.ledger = Ledger()
        self.given_up: list[Stuck] = []
        self._session = session
        self._environment = environment
        self._registry = registry
        self._gauge = gauge
        self._spawns = SpawnWatch(environment)
        self._pump: ResultPump | None = None

    def follow(self, pump: ResultPump) -> None:
        """Hear of intervals from a result pump."""
        self._pump = pump
        pump.hand_to(self.ledger.add)

    def prepare(self, segment: ScheduledSegment) -> None:
        """Lay out what the segment needs, and bring the caches into their state."""
        self._session.target_dirs[segment.target].lay_out()
        self.prepare_caches(segment.target)

    def prepare_caches(self, target: int) -> None:
        """Bring the caches into their state; what runs afterwards may change what was laid out."""
        target_dir = self._session.target_dirs[target]
        self._session.procedure.prepare(target_dir)
        target_dir.fresh = not self._session.restless

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        """Let the users run."""
        self._session.engine.begin_segment(
            segment.target, segment.round, warm_up_ns, segment.duration_ns
        )
        self._registry.open()

    def end_warm_up(self) -> None:
        """Measure from now on."""
        self._session.engine.measure()

    def open_gauge(self) -> None:
        """A measured phase begins."""
        self._gauge.open()

    def close_gauge(self) -> None:
        """It has ended."""
        self._gauge.close()

    def stop_users(self) -> None:
        """Have Locust stop its users."""
        runner = self._environment.runner
        if isinstance(runner, LocalRunner):
            runner.stop()

    def end(self, grace_ns: int) -> None:
        """End the segment, in bounded time."""
        self.give_up(call_in_thread(self._session.engine.end_segment, grace_ns))
        self._registry.give_up(stuck.user for stuck in self.given_up)

    def give_up(self, stuck: Sequence[Stuck]) -> None:
        """Remember who hangs, and that nothing more is asked of their targets."""
        self.given_up += stuck
        for each in stuck:
            self._session.target_dirs[each.target].is_hanging = True

    def check(self) -> None:
        """Raise why there are fewer users than were asked for."""
        self._spawns.check()
        self._registry.check()

    def watch(self) -> None:
        """Raise why there are fewer users than were asked for: the rest of the run is lost."""
        self.check()

    def expected_users(self) -> int:
        """Return how many users Locust runs that have a thread each."""
        runner = self._environment.runner
        return 0 if runner is None else count_native(self._environment, runner.user_classes_count)

    def running_users(self) -> int:
        """Return how many users have a thread."""
        return self._session.engine.running_users()

    def busy_users(self) -> int:
        """Return how many users have more to do in this segment."""
        return self._session.engine.busy_users()

    def stuck_users(self) -> int:
        """Return how many users hang in the kernel for good."""
        return len({stuck.user for stuck in self.given_up})

    def hanging(self) -> tuple[Hang, ...]:
        """Return the calls that do not come back."""
        return tuple(hang_of(stuck) for stuck in self._session.engine.stuck())

    def settle(self) -> None:
        """Carry the last interval, so that Locust writes what the engine counted."""
        rows = self._session.engine.totals()
        wanted = sum(row.histogram.count for row in rows if is_transaction(row))
        poll(self._has_counted(wanted), SETTLE_S)

    def _has_counted(self, wanted: int) -> Callable[[], bool]:
        def look() -> bool:
            if self._pump is not None:
                self._pump.carry()
            return self.ledger.count >= wanted

        return look


def poll(is_done: Callable[[], bool], seconds: float) -> bool:
    """Look again and again until it is done, for so long at most; returns whether it is."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() >= deadline:
            return False
        gevent.sleep(POLL_S)
    return True


def hang_of(stuck: Stuck) -> Hang:
    """Return a call that the engine's watchdog reports as it is shown."""
    return Hang(f"user {stuck.user}, {stuck.op} {stuck.path}", stuck.age_ns / 1e9)
