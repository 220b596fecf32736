"""The runtime of one process: the engine's users, their slots, the result pump, and the client.

A controller leads it: the one of this process, or that of a master on another machine.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import gevent
from gevent import Greenlet

from replayer._native import Stuck
from replayer.errors import ReplayerError
from replayer.measure.health import Health
from replayer.measure.mountstats import NFS_EVENT
from replayer.run.client_health import ClientHealth, CpuWait, CpuWaits, Standstill
from replayer.run.controller import POLL_S, LoadClient
from replayer.run.doorbell import Doorbell, Mailbox, ResultPump
from replayer.run.ledger import Ledger, is_transaction
from replayer.run.nfs_requests import NfsRequests
from replayer.run.prepared_run import PreparedRun
from replayer.run.progress import Hang
from replayer.run.schedule import ScheduledSegment
from replayer.run.spawner import UserContext
from replayer.run.targets import explain_record
from replayer.run.threads import call_in_thread
from replayer.run.user_registry import UserRegistry
from replayer.supervisor import give_up_on, hung_calls

if TYPE_CHECKING:
    from pydantic import JsonValue

SETTLE_S = 5.0  # chosen: the recorder hands over an interval within its own length


class EngineClient(LoadClient):
    """The engine of this process, its users and its targets."""

    def __init__(self, session: PreparedRun, registry: UserRegistry, gauge: ClientHealth) -> None:
        self.targets = tuple(target_dir.target.name for target_dir in session.target_dirs)
        self._beside = frozenset(
            index
            for index, target_dir in enumerate(session.target_dirs)
            if target_dir.target.is_beside
        )
        self.ledger = Ledger()
        self.given_up: list[Stuck] = []
        """Users that hang in the kernel."""
        self._session = session
        self._spawner = session.request.spawner
        self._registry = registry
        self._gauge = gauge
        self._pump: ResultPump | None = None
        self._segment: ScheduledSegment | None = None
        self._requests = NfsRequests(self._nfs_mounts, session.engine.now_ns, self._note_requests)

    def follow(self, pump: ResultPump) -> None:
        """Hear of intervals from a result pump."""
        self._pump = pump
        pump.hand_to(self.ledger.add)

    def lay_out(self, target: int) -> None:
        """Lay out what a segment on a target needs."""
        self._session.target_dirs[target].lay_out()

    def write_out(self, target: int) -> None:
        """Have written out what was written on a target."""
        self._session.target_dirs[target].write_out()

    def prepare(self, segment: ScheduledSegment) -> None:
        """Lay out what the segment needs, and bring the caches into their state."""
        for target in segment.targets:
            self.lay_out(target)
        if self._session.request.workload.duet:
            # What is written out later slows one target alone, or one beside the other.
            for target in range(len(self.targets)):
                self.write_out(target)
        for target in segment.targets:
            self.prepare_caches(target)

    def prepare_caches(self, target: int) -> None:
        """Bring the caches into their state; what runs afterwards may change what was laid out."""
        target_dir = self._session.target_dirs[target]
        self._session.procedure.prepare(target_dir)
        target_dir.fresh = not self._session.restless

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        """Let the users run."""
        self._segment = segment
        self._session.engine.begin_segment(
            segment.target,
            segment.round,
            warm_up_ns,
            segment.duration_ns,
            beside=segment.beside,
            phase=segment.phase,
        )
        self._registry.open()

    def end_warm_up(self) -> None:
        """Measure from now on."""
        self._session.engine.measure()

    def open_gauge(self) -> None:
        """A measured phase begins."""
        segment = self._segment
        if segment is not None:
            self._requests.open(segment.targets, segment.round)
        self._gauge.open(is_beside=segment is not None and segment.target in self._beside)

    def close_gauge(self) -> None:
        """It has ended."""
        self._gauge.close()
        self._requests.close()

    def _note_requests(self, at_s: float, fields: Mapping[str, "JsonValue"]) -> None:
        with suppress(ReplayerError):  # the times that were measured are kept without it
            self._session.writer.note(NFS_EVENT, at_s, fields)

    def _nfs_mounts(self, target: int) -> Sequence[str]:
        """Return where the NFS mounts of a target are mounted."""
        mounts = self._session.writer.run.targets[target].mounts
        return [each.mount_point for each in mounts if each.filesystem in {"nfs", "nfs4"}]

    def stop_users(self) -> None:
        """Stop users that the engine cannot stop: those with Python tasks."""
        if self._spawner.has_python_users:
            self._spawner.stop_users()

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
        self._spawner.check()
        self._registry.check()

    def has_all_users(self) -> bool:
        """Whether all users are started; those of a load shape come and go."""
        return self._spawner.is_shaped or self._spawner.has_all

    def lacks_threads(self) -> bool:
        """Whether users that are started still wait for their threads."""
        return not self._spawner.is_shaped and self.running_users() < self._spawner.native_users()

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
        return tuple(
            Hang(f"user {stuck.user}, {stuck.op} {stuck.path}", stuck.age_ns / 1e9)
            for stuck in self._session.engine.stuck()
        )

    def settle(self) -> None:
        """Carry the last interval, so that Locust writes what the engine counted."""
        rows = self._session.engine.totals()
        wanted = sum(row.histogram.count for row in rows if is_transaction(row))
        deadline = time.monotonic() + SETTLE_S
        while self._pump is not None and time.monotonic() < deadline:
            self._pump.carry()
            if self.ledger.count >= wanted:
                return
            gevent.sleep(POLL_S)


class Runtime:
    """A session's users and helpers."""

    def __init__(self, session: PreparedRun, numbers: Sequence[int]) -> None:
        self._session = session
        engine, spawner = session.engine, session.request.spawner
        names = tuple(target_dir.target.name for target_dir in session.target_dirs)
        self._registry = registry = UserRegistry(engine, numbers, session.request.users)
        self.statistics = spawner.open_statistics(engine.begin_epoch_ns, names)
        mailbox = Mailbox(engine)
        self._doorbell = Doorbell(engine, registry, mailbox)
        self.pump = ResultPump(engine, self._doorbell, self.statistics)
        self._standstill = Standstill(engine.now_ns, self._note_standstill)
        self._gauge = ClientHealth(engine, session.overhead_ns, self._standstill)
        self.client = EngineClient(session, registry, self._gauge)
        self.client.follow(self.pump)
        spawner.connect(UserContext(engine, registry, mailbox, len(names)))
        self._cpu_waits = CpuWaits(engine, self.client.running_users, self._note_cpu_wait)
        self._looker: Greenlet[[], None] | None = None
        self._carrier: Greenlet[[], None] | None = None
        self._hung_before = len(hung_calls())

    @property
    def hung(self) -> bool:
        """Whether calls hang that can never be ended."""
        return bool(self.client.given_up) or len(hung_calls()) > self._hung_before

    def start(self) -> None:
        """Listen to the engine, and carry."""
        self._standstill.start()
        self._doorbell.start()
        self.pump.watch()
        self._carrier = gevent.spawn(self.pump.run)
        self._looker = gevent.spawn(self._cpu_waits.run)

    def close(self) -> None:
        """End all threads, then carry what they left."""
        self._standstill.stop()
        if self._looker is not None:
            self._looker.kill()
        self._registry.close()
        stuck = call_in_thread(self._session.engine.close)
        self.client.give_up(stuck)
        for hung in self.client.given_up:
            give_up_on(f"{hung.op} {hung.path}")
        self.pump.finish()
        if self._carrier is not None:
            self._carrier.join()
        self.pump.carry()
        self._doorbell.stop()

    def record_failure(self) -> ReplayerError | None:
        """Return why the record is not whole; None when it is."""
        session = self._session
        return explain_record(session.writer.folder.path, session.engine.record_error())

    def _note_standstill(self, begin_ns: int, length_ns: int) -> None:
        """Keep in the run folder when this client stood still; the sum is told without it, too."""
        with suppress(ReplayerError):
            self._session.writer.note(
                "standstill", round(begin_ns / 1e9, 6), {"length_s": round(length_ns / 1e9, 6)}
            )

    def _note_cpu_wait(self, wait: CpuWait) -> None:
        fields = {name: round(value, 6) for name, value in vars(wait).items() if name != "at_s"}
        with suppress(ReplayerError):
            self._session.writer.note("cpu_wait", round(wait.at_s, 6), fields)

    def health(self) -> Health:
        """Return what the harness cost and suffered until now."""
        calls = self.client.ledger.measured_calls
        return self._gauge.health(calls, self.client.stuck_users(), self.pump.dropped)
