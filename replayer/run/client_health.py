"""The health of this client: CPU time while it measured, and times when the process stood still.

It is read at the begin and end of every measured phase and added up. ``measure`` judges it.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gevent
from gevent.monkey import get_original

from replayer._native import Engine, clock_ns
from replayer.measure.cpus import Added, CpuTime, read_cpu_time
from replayer.measure.health import WAITING_SHARE, Health
from replayer.measure.units import NS_PER_S

TICK_NS = 250_000_000  # chosen: well below the least that is told of, and few looks a second
LEAST_NS = 1_000_000_000  # chosen: a page that is read from a slow disk may hold us up for less

SECOND_S = 1.0
LEAST_WORK_S = 0.01  # chosen: of less, what was seen of waits means nothing

TORN_NS = LEAST_NS // 10  # chosen: two readings so far apart are of no one moment
TRIES = 3

Tell = Callable[[int, int], None]
"""Hears when it began, in the run's time, and how long it was; both in nanoseconds."""

# Real ones: the patched ones are greenlets, and stand in line with all others.
_start_thread: Callable[..., object] = get_original("_thread", "start_new_thread")
_make_lock: Callable[[], Any] = get_original("_thread", "allocate_lock")
_sleep: Callable[[float], None] = get_original("time", "sleep")
_get_ident: Callable[[], int] = get_original("_thread", "get_ident")


@dataclass(frozen=True)
class ClockReading:
    """What is known at a moment."""

    now_ns: int
    """The run's time."""
    clock_ns: int
    """A clock that goes on while the machine sleeps."""
    busy_ns: int
    """For how long the thread that has the interpreter most ran or waited for a CPU, and the one
    that ticks waited for one."""


def stood_still_ns(before: ClockReading, after: ClockReading) -> int:
    """Return for how long nothing ran between two looks, where one tick was due; 0 for a moment."""
    late_ns = after.clock_ns - before.clock_ns - TICK_NS
    still_ns = late_ns - (after.busy_ns - before.busy_ns)
    return still_ns if still_ns >= LEAST_NS else 0


class Standstill:
    """Ticks, and adds up for how long nothing ran."""

    def __init__(self, now_ns: Callable[[], int], tell: Tell) -> None:
        self._now_ns = now_ns
        self._tell = tell
        """Hears of each time that it stood still, in the thread that has noticed."""
        self._lock = _make_lock()
        self._ticks = False
        self._last: ClockReading | None = None
        self._sum_ns = 0
        self._busy = _BusyTime()

    def start(self) -> None:
        """Begin to tick, beside the calling thread: the one that has the interpreter most."""
        self._busy = _BusyTime()
        self._ticks = True
        _start_thread(self._tick, ())

    def stop(self) -> None:
        """Tick no more."""
        self._note()
        with self._lock:
            self._ticks, self._last = False, None

    def sum_ns(self) -> int:
        """Return for how long it has stood still until now."""
        self._note()
        return self._sum_ns

    def _tick(self) -> None:
        self._busy.ticker = threading.get_native_id()
        with self._lock:
            if self._ticks:
                self._last = self._look()
        while self._ticks:
            _sleep(TICK_NS / 1e9)
            self._note()

    def _note(self) -> None:
        """Look, by whichever thread comes first, and count what nothing explains."""
        with self._lock:
            before = self._last
            if before is None:
                return
            self._last = self._look()
            still_ns = stood_still_ns(before, self._last)
            self._sum_ns += still_ns
        if still_ns:
            self._tell(before.now_ns, still_ns)

    def _look(self) -> ClockReading:
        # Whoever takes the interpreter between the two readings is busy in only one of them.
        for _ in range(TRIES):
            now_ns, clock_ns = self._now_ns(), _clock_ns()
            busy_ns = self._busy.sum_ns()
            if _clock_ns() - clock_ns < TORN_NS:
                break
        return ClockReading(now_ns, clock_ns, busy_ns)


def _clock_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class _BusyTime:
    """The time of which something of ours is known to have made use."""

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self._clock = time.pthread_getcpuclockid(_get_ident())
        self.ticker = 0
        """The thread that ticks; 0 before there is one."""

    def sum_ns(self) -> int:
        """Return for how long the thread that made this ran or waited, and the ticker waited."""
        try:
            waited_ns = _waited_ns(self._thread) + _waited_ns(self.ticker)
        except (OSError, ValueError, IndexError):  # a kernel that does not count waits
            return time.process_time_ns()
        # Its clock: what schedstat says of running is of the last tick, and a CPU may have none.
        return time.clock_gettime_ns(self._clock) + waited_ns


def _waited_ns(thread: int) -> int:
    """Return for how long a thread has waited for a CPU: proc_pid_schedstat(5)."""
    # A text file of Python's makes nine calls, which machines with slow calls feel.
    file = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(file, 100).split()[1])
    finally:
        os.close(file)


@dataclass(frozen=True)
class _Reading(Added):
    wall_ns: int
    cpu_ns: int
    delay_ns: int
    in_call_ns: int
    outside_ns: int
    still_ns: int
    cpus: CpuTime = field(default_factory=CpuTime)


_NOTHING = _Reading(0, 0, 0, 0, 0, 0)


class ClientHealth:
    """Adds up what measured phases cost, those beside a neighbour apart.

    The health is that of the setting in which users waited for CPUs more: a mean would hide it.
    """

    def __init__(self, engine: Engine, overhead_ns: float | None, standstill: Standstill) -> None:
        self._engine = engine
        self._standstill = standstill
        self._overhead_ns = overhead_ns
        self._clock_ns = clock_ns()
        self._begin: _Reading | None = None
        self._is_beside = False
        self._sums: dict[bool, _Reading] = {}
        """By whether they are those beside a neighbour."""

    def open(self, *, is_beside: bool = False) -> None:
        """A measured phase begins."""
        self._is_beside = is_beside
        self._begin = self._read()

    def close(self) -> None:
        """It has ended."""
        self._sums = self._so_far()
        self._begin = None

    def health(self, calls: int, given_up: int, dropped: int) -> Health:
        """Return the sum until now, with users that hang and transactions dropped by listeners."""
        found = self._so_far()
        parts = [
            self._health_of(each, calls, given_up, dropped) for each in found.values() or [_NOTHING]
        ]
        worst = max(parts, key=lambda each: each.waiting_share)
        share = worst.in_call_ns / max(sum(each.in_call_ns for each in parts), 1)
        return worst.model_copy(
            update={
                "calls": round(calls * share) if len(parts) > 1 else calls,
                "stood_still_ns": sum(each.stood_still_ns for each in parts),
            }
        )

    def _health_of(self, so_far: _Reading, calls: int, given_up: int, dropped: int) -> Health:
        capacity_ns = so_far.wall_ns * len(os.sched_getaffinity(0))
        cpu_share = min(so_far.cpu_ns / capacity_ns, 1.0) if capacity_ns else 0.0
        outside_share = so_far.outside_ns / capacity_ns if capacity_ns else 0.0
        others_share, stolen_share = so_far.cpus.shares_beside(so_far.cpu_ns)
        return Health(
            client_cpu_share=cpu_share,
            others_cpu_share=others_share,
            stolen_cpu_share=stolen_share,
            outside_ns=so_far.outside_ns,
            outside_cpu_share=min(outside_share, cpu_share),
            # Of many users the engine looks at some and scales up: the sum may go back a little.
            run_queue_delay_ns=max(so_far.delay_ns, 0),
            in_call_ns=so_far.in_call_ns,
            stood_still_ns=so_far.still_ns,
            overhead_ns=self._overhead_ns,
            clock_ns=self._clock_ns,
            calls=calls,
            users_given_up=given_up,
            events_dropped=dropped,
        )

    def _so_far(self) -> dict[bool, _Reading]:
        if self._begin is None:
            return self._sums
        known = self._sums.get(self._is_beside, _NOTHING)
        return {**self._sums, self._is_beside: known + (self._read() - self._begin)}

    def _read(self) -> _Reading:
        return _Reading(
            time.monotonic_ns(),
            time.process_time_ns(),
            self._engine.run_queue_delay_ns(),
            self._engine.in_call_ns(),
            self._engine.outside_ns(),
            self._standstill.sum_ns(),
            read_cpu_time(),
        )


@dataclass(frozen=True)
class CpuWait:
    """A second in which users waited for a CPU so long that their times are partly the client's.

    Attributes:
        at_s: When it ended, in the run's time.
        length_s: How long it was.
        waited_s: How long all users together were ready to run and had no CPU.
        worked_s: How long they were in calls, or worked outside of them.
    """

    at_s: float
    length_s: float
    waited_s: float
    worked_s: float


class CpuWaits:
    """Looks each second how long users waited for a CPU.

    Of many users the engine looks at some and scales their waits up, also those of before: a second
    in which users came or went tells nothing.
    """

    def __init__(
        self, engine: Engine, users: Callable[[], int], tell: Callable[[CpuWait], None]
    ) -> None:
        self._engine = engine
        self._users = users
        self._tell = tell

    def run(self) -> None:
        """Look until it is killed."""
        before, users = self._look(), self._users()
        while True:
            gevent.sleep(SECOND_S)
            now, users_before, users = self._look(), users, self._users()
            if users != users_before:
                before = now
                continue
            length_s, waited_s, worked_s = (
                (late - early) / NS_PER_S for early, late in zip(before, now, strict=True)
            )
            if worked_s > LEAST_WORK_S and waited_s > WAITING_SHARE * worked_s:
                self._tell(CpuWait(now[0] / NS_PER_S, length_s, waited_s, worked_s))
            before = now

    def _look(self) -> tuple[int, int, int]:
        engine = self._engine
        worked_ns = engine.in_call_ns() + engine.outside_ns()
        return engine.now_ns(), engine.run_queue_delay_ns(), worked_ns
