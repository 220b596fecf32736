"""The conductor: one greenlet that leads a session through its segments.

It never blocks the hub: it looks, sleeps a little, and makes long calls in threads. Locust starts
the users and stops them; when they work, on which target and for how long is decided here.
"""

import time
from collections.abc import Callable

import gevent
from gevent import Greenlet
from gevent.event import Event
from locust import stats
from locust.env import Environment
from locust.runners import LocalRunner

from replayer.engine import Stuck
from replayer.errors import EXIT_BUG, ReplayerError, keep_bug
from replayer.load.doorbell import Courier
from replayer.load.gauge import Gauge
from replayer.load.interruption import Level
from replayer.load.ledger import Ledger, is_transaction
from replayer.load.options import options_of
from replayer.load.progress import Hang, Tick
from replayer.load.roster import Roster
from replayer.load.schedule import Segment
from replayer.load.session import Session
from replayer.load.threads import call_in_thread
from replayer.load.users import has_python_users

__all__ = ["Band", "Conductor"]

POLL_S = 0.05
FOREVER_NS = 2**62  # a warm-up that only measure() ends
THREADS_S = 60.0  # chosen: ten thousand threads start within a few seconds on a busy machine
SETTLE_S = 5.0  # chosen: the recorder hands over an interval within its own length
NS_PER_S = 1_000_000_000


class BugError(ReplayerError):
    """A mistake of ours, told as any refusal."""

    exit_code = EXIT_BUG


class Band:
    """Who plays along: the users' numbers, what is measured of them, and who carries it."""

    def __init__(self, roster: Roster, ledger: Ledger, courier: Courier, gauge: Gauge) -> None:
        self.roster = roster
        self.ledger = ledger
        self.courier = courier
        self.gauge = gauge


class Conductor:
    """Leads one session.

    Attributes:
        failure: Why it could not go on, if so.
        given_up: Users that hang in the kernel.
    """

    def __init__(self, session: Session, environment: Environment, band: Band) -> None:
        self._session = session
        self._environment = environment
        self._band = band
        self._everyone = Event()
        self._stop_wanted = False
        self._calls_before = 0
        self._greenlet: Greenlet[[], None] | None = None
        self.failure: ReplayerError | None = None
        self.given_up: list[Stuck] = []

    def start(self) -> None:
        """Begin, when Locust begins its test."""
        self._greenlet = gevent.spawn(self._lead)

    def everyone_is_there(self) -> None:
        """Locust has started all users."""
        self._everyone.set()

    def finish(self) -> None:
        """End the segment that runs, and wait for it; unless the conductor itself asks."""
        if self._greenlet is gevent.getcurrent():
            return
        self._stop_wanted = True
        if self._greenlet is not None:
            self._greenlet.join()

    def _lead(self) -> None:
        try:
            for segment in self._session.request.schedule:
                # Those who hang can take no part in another turn, and would be missed there.
                if self._is_ending() or self.given_up:
                    break
                self._play(segment)
            self._settle()
        except ReplayerError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001 - a bug must end the run, not hang it
            self.failure = BugError(keep_bug(error))
        self._leave()

    def _play(self, segment: Segment) -> None:
        self._prepare(segment)
        engine, ramped = self._session.engine, self._ramps_under_load()
        self._calls_before = self._band.ledger.calls
        if not ramped:
            self._wait_for_users(segment)
        warm_up_ns = self._session.request.workload.warm_up_ns
        engine.begin_segment(segment.target, segment.round, FOREVER_NS if ramped else warm_up_ns)
        try:
            if ramped:
                self._wait_for_users(segment)
            self._wait(segment, "warm-up", warm_up_ns)
            if ramped and not self._is_ending():
                engine.measure()
            self._band.gauge.open()
            self._wait(segment, "measured", segment.duration_ns)
            self._band.roster.check()
        finally:
            self._band.gauge.close()
            self._stop_python_users(segment)
            grace_ns = int(self._environment.stop_timeout * NS_PER_S)
            self.given_up += call_in_thread(engine.end_segment, grace_ns)
            self._band.roster.give_up(stuck.user for stuck in self.given_up)

    def _stop_python_users(self, segment: Segment) -> None:
        """Have Locust stop its users before the last segment ends: the engine cannot stop tasks."""
        if self._stop_wanted or not has_python_users(self._environment):
            return
        runner = self._environment.runner
        last = segment is self._session.request.schedule[-1] or self._is_ending()
        if last and isinstance(runner, LocalRunner):
            runner.stop()

    def _prepare(self, segment: Segment) -> None:
        ground = self._session.grounds[segment.target]
        ground.lay_out()
        self._session.procedure.prepare(ground)
        ground.fresh = not self._session.restless

    def _ramps_under_load(self) -> bool:
        """Whether users work while others still arrive.

        A single segment by time: yes, a growing load is what a ramp-up is for. Several: no, each
        must be like the others. Ended by transactions: no, the first users would be done before
        the clock starts.
        """
        by_time = self._session.request.workload.transactions_per_user is None
        return by_time and len(self._session.request.schedule) == 1

    def _wait_for_users(self, segment: Segment) -> None:
        if self._environment.shape_class is not None:
            return  # its users come and go: there is no moment when all are there
        while not self._everyone.is_set() and not self._is_ending():
            self._look(segment, "users arrive", None)
        deadline = time.monotonic() + THREADS_S
        while self._session.engine.running_users() < self._users_of_locust():
            if self._is_ending() or time.monotonic() > deadline:
                break
            self._look(segment, "users arrive", None)
        self._band.roster.check()

    def _users_of_locust(self) -> int:
        runner = self._environment.runner
        return runner.user_count if runner is not None else 0

    def _wait(self, segment: Segment, phase: str, length_ns: int | None) -> None:
        begin = time.monotonic()
        end = None if length_ns is None else begin + length_ns / NS_PER_S
        while not self._is_ending() and not self._are_done():
            left_s = None if end is None else end - time.monotonic()
            if left_s is not None and left_s <= 0:
                return
            self._look(segment, phase, left_s)

    def _are_done(self) -> bool:
        by_count = self._session.request.workload.transactions_per_user is not None
        return by_count and self._session.engine.busy_users() == 0

    def _look(self, segment: Segment, phase: str, left_s: float | None) -> None:
        """Show how things are, and sleep a little."""
        names = tuple(ground.target.name for ground in self._session.grounds)
        rounds = self._session.request.rounds
        turn = f"round {segment.round + 1} of {rounds}, " if rounds > 1 else ""
        tick = Tick(
            phase=f"{turn}{names[segment.target]}, {phase}",
            users=self._session.engine.running_users(),
            left_s=left_s,
            ledger=self._band.ledger,
            targets=names,
            hanging=tuple(_hang(stuck) for stuck in self._session.engine.stuck()),
            done_share=self._done_share(),
        )
        self._session.request.progress.tick(tick)
        gevent.sleep(POLL_S if left_s is None else max(min(POLL_S, left_s), 0))

    def _done_share(self) -> float | None:
        """Return how much of a segment of whole traces is done, as of the last interval."""
        events = self._session.request.workload.events
        done = self._band.ledger.calls - self._calls_before
        return done / events if events else None

    def _is_ending(self) -> bool:
        return self._stop_wanted or self._session.request.interruption.level > Level.NONE

    def _settle(self) -> None:
        """Carry the last interval, so that Locust writes what the engine counted."""
        rows = self._session.engine.totals()
        wanted = sum(row.histogram.count for row in rows if is_transaction(row))
        _poll(self._has_counted(wanted), SETTLE_S)

    def _has_counted(self, wanted: int) -> Callable[[], bool]:
        def look() -> bool:
            self._band.courier.carry()
            return self._band.ledger.count >= wanted

        return look

    def _leave(self) -> None:
        """End Locust's test, unless it is Locust that is ending; with a page, others may follow."""
        options = options_of(self._environment)
        if options.csv_prefix:
            gevent.sleep(stats.CSV_STATS_INTERVAL_SEC + POLL_S)
        runner = self._environment.runner
        if self._stop_wanted or not isinstance(runner, LocalRunner):
            return
        if options.headless:
            runner.quit()
        else:
            runner.stop()


def _poll(is_done: Callable[[], bool], seconds: float) -> None:
    """Look again and again until it is done, for so long at most."""
    deadline = time.monotonic() + seconds
    while not is_done() and time.monotonic() < deadline:
        gevent.sleep(POLL_S)


def _hang(stuck: Stuck) -> Hang:
    return Hang(f"user {stuck.user}, {stuck.op} {stuck.path}", stuck.age_ns / 1e9)
