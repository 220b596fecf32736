"""The controller: one greenlet that leads a session through its segments.

It never blocks the hub: it looks, sleeps a little, and makes long calls in threads. Locust starts
the users and stops them; when they work, on which target and for how long is decided here.
"""

import time

import gevent
from gevent import Greenlet
from gevent.event import Event
from locust import stats
from locust.env import Environment
from locust.runners import WorkerRunner

from replayer.errors import EXIT_BUG, ReplayerError, keep_bug
from replayer.locust.engine_client import POLL_S, LoadClient
from replayer.locust.shapes import ShapeWatch
from replayer.locust.users import has_python_users, list_kinds
from replayer.measure.kinds import UserKind
from replayer.measure.tasks import TaskFailure
from replayer.run.interruption import InterruptedRunError, Level
from replayer.run.options import options_of
from replayer.run.prepared_run import RunRequest
from replayer.run.progress import Tick
from replayer.run.schedule import ScheduledSegment

__all__ = ["PhaseController"]

FOREVER_NS = 2**62  # a warm-up that only measure() ends
THREADS_S = 60.0  # chosen: ten thousand threads start within a few seconds on a busy machine
NS_PER_S = 1_000_000_000


class BugError(ReplayerError):
    """A mistake of ours, told as any refusal."""

    exit_code = EXIT_BUG


class PhaseController:
    """Leads one run.

    Attributes:
        failure: Why it could not go on, if so.
        most_users: How many there were at the same time, at most.
    """

    def __init__(self, request: RunRequest, environment: Environment, client: LoadClient) -> None:
        self._request = request
        self._environment = environment
        self._client = client
        self._shape = ShapeWatch(environment)
        self._everyone = Event()
        self._stop_wanted = False
        self._calls_before = 0
        self._greenlet: Greenlet[[], None] | None = None
        self.failure: ReplayerError | None = None
        self.most_users = 0
        self._most_of: dict[str, int] = {}

    def start(self) -> None:
        """Begin, when Locust begins its test."""
        self._greenlet = gevent.spawn(self._run)

    def everyone_is_there(self) -> None:
        """Locust has started all users, or all of this stage of a load shape."""
        runner = self._environment.runner
        for name, count in ({} if runner is None else runner.target_user_classes_count).items():
            self._most_of[name] = max(self._most_of.get(name, 0), count)
        self._everyone.set()

    @property
    def user_kinds(self) -> tuple[UserKind, ...]:
        """How many users of each kind there were at most, where a locustfile brought some."""
        return list_kinds(self._environment, self._most_of)

    @property
    def shaped_users(self) -> int | None:
        """How many users a load shape has had, at most; None where none says how many there are."""
        return None if self._environment.shape_class is None else self.most_users

    @property
    def shape_failures(self) -> tuple[TaskFailure, ...]:
        """What the load shape has raised, which ends it."""
        return self._shape.found

    @property
    def is_asking(self) -> bool:
        """Whether the controller itself asks this: it cannot wait for its own end."""
        return self._greenlet is gevent.getcurrent()

    def finish(self) -> None:
        """End the segment that runs, and wait for it; unless the controller itself asks."""
        if self.is_asking:
            return
        self._stop_wanted = True
        if self._greenlet is not None:
            self._greenlet.join()

    def _run(self) -> None:
        try:
            self._run_segments()
        except ReplayerError as error:
            self.failure = None if self._is_wanted(error) else error
        except Exception as error:  # noqa: BLE001 - a bug must end the run, not hang it
            self.failure = BugError(keep_bug(error))
        try:
            self._client.settle()
        except ReplayerError as error:
            self.failure = self.failure or error
        except Exception as error:  # noqa: BLE001 - see above
            self.failure = BugError(keep_bug(error))
        self._leave()

    def _is_wanted(self, error: ReplayerError) -> bool:
        """Whether a run ends as whoever leads it has asked; a worker may end for its own user."""
        asked = self._request.interruption.level > Level.NONE
        return asked and isinstance(error, InterruptedRunError)

    def _run_segments(self) -> None:
        self._client.check()
        for segment in self._request.schedule:
            # Those who hang can take no part in another turn, and would be missed there.
            if self._is_ending() or self._client.stuck_users():
                break
            self._run_segment(segment)

    def _run_segment(self, segment: ScheduledSegment) -> None:
        self._client.prepare(segment)
        ramped = self._ramps_under_load()
        self._client.ledger.begin_turn()
        self._calls_before = self._client.ledger.calls
        if not ramped:
            self._wait_for_users(segment)
        warm_up_ns = self._request.workload.warm_up_ns
        self._client.begin(segment, FOREVER_NS if ramped else warm_up_ns)
        began_s = time.monotonic()
        try:
            if ramped:
                self._wait_for_users(segment)
                began_s = time.monotonic()
            began_s += warm_up_ns / NS_PER_S
            self._wait(segment, "warm-up", began_s)
            if ramped and not self._is_ending():
                self._client.end_warm_up()
                began_s = time.monotonic()
            self._client.open_gauge()
            self._wait(segment, "measured", _after(began_s, segment.duration_ns))
            self._client.check()
        finally:
            self._client.close_gauge()
            self._stop_python_users(segment)
            self._client.end(int(self._environment.stop_timeout * NS_PER_S))

    def _stop_python_users(self, segment: ScheduledSegment) -> None:
        """Have Locust stop its users before the last segment ends: the engine cannot stop tasks."""
        if self._stop_wanted or not has_python_users(self._environment):
            return
        if segment is self._request.schedule[-1] or self._is_ending():
            self._client.stop_users()

    def _ramps_under_load(self) -> bool:
        """Whether users work while others still arrive.

        A single segment by time: yes, a growing load is what a ramp-up is for. Several: no, each
        must be like the others. Ended by transactions: no, the first users would be done before
        the clock starts.
        """
        by_time = self._request.workload.transactions_per_user is None
        return by_time and len(self._request.schedule) == 1

    def _wait_for_users(self, segment: ScheduledSegment) -> None:
        if self._environment.shape_class is not None:
            return  # its users come and go: there is no moment when all are there
        while not self._everyone.is_set() and not self._is_ending():
            self._look(segment, "users arrive", None)
        deadline = time.monotonic() + THREADS_S
        while self._client.running_users() < self._client.expected_users():
            if self._is_ending() or time.monotonic() > deadline:
                break
            self._look(segment, "users arrive", None)
        self._client.check()

    def _wait(self, segment: ScheduledSegment, phase: str, end_s: float | None) -> None:
        """Wait until a time: the engine, which is on time, ends the phase by itself."""
        while not self._is_ending() and not self._are_done():
            left_s = None if end_s is None else end_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return
            self._look(segment, phase, left_s)

    def _are_done(self) -> bool:
        by_count = self._request.workload.transactions_per_user is not None
        return by_count and self._client.busy_users() == 0

    def _look(self, segment: ScheduledSegment, phase: str, left_s: float | None) -> None:
        """Show how things are, and sleep a little."""
        self._client.watch()
        running = self._client.running_users()
        self.most_users = max(self.most_users, running)
        names = self._client.targets
        rounds = self._request.rounds
        turn = f"round {segment.round + 1} of {rounds}, " if rounds > 1 else ""
        tick = Tick(
            phase=f"{turn}{names[segment.target]}, {phase}",
            users=running,
            left_s=left_s,
            ledger=self._client.ledger,
            targets=names,
            hanging=self._client.hanging(),
            done_share=self._done_share(),
            target=segment.target,
        )
        self._request.progress.tick(tick)
        gevent.sleep(POLL_S if left_s is None else max(min(POLL_S, left_s), 0))

    def _done_share(self) -> float | None:
        """Return how much of a segment of whole traces is done, as of the last interval."""
        events = self._request.workload.events
        done = self._client.ledger.calls - self._calls_before
        return done / events if events else None

    def _is_ending(self) -> bool:
        return self._stop_wanted or self._request.interruption.level > Level.NONE

    def _leave(self) -> None:
        """End Locust's test, unless it is Locust that is ending; with a page, others may follow."""
        options = options_of(self._environment)
        if options.csv_prefix:
            gevent.sleep(stats.CSV_STATS_INTERVAL_SEC + POLL_S)
        runner = self._environment.runner
        if self._stop_wanted or runner is None or isinstance(runner, WorkerRunner):
            return
        if options.headless:
            runner.quit()
        else:
            runner.stop()


def _after(began_s: float, length_ns: int | None) -> float | None:
    return None if length_ns is None else began_s + length_ns / NS_PER_S
