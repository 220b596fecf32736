"""Whether this process stood still as a whole: stopped (Ctrl-Z), frozen, asleep with its machine.

A thread ticks. A tick that comes late was held up by a busy machine, by the interpreter, which one
thread has at a time, or by nothing that runs: then all threads stood still, those of the users too,
and calls under way took as long. Whether that spoils the run is judged by the measure room.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gevent.monkey import get_original

__all__ = ["ClockReading", "Standstill", "stood_still_ns"]

TICK_NS = 250_000_000  # chosen: well below the least that is told of, and few looks a second
LEAST_NS = 1_000_000_000  # chosen: a page that is read from a slow disk may hold us up for less

Tell = Callable[[int, int], None]
"""Hears when it began, in the run's time, and how long it was; both in nanoseconds."""

# Real ones: the patched ones are greenlets, and stand in line with all others.
_start_thread: Callable[..., object] = get_original("_thread", "start_new_thread")
_make_lock: Callable[[], Any] = get_original("_thread", "allocate_lock")
_sleep: Callable[[float], None] = get_original("time", "sleep")
_get_ident: Callable[[], int] = get_original("_thread", "get_ident")


@dataclass(frozen=True)
class ClockReading:
    """What is known at a moment.

    Attributes:
        now_ns: The run's time.
        clock_ns: A clock that goes on while the machine sleeps.
        busy_ns: For how long the thread that has the interpreter most ran or waited for a CPU, and
            the one that ticks waited for one.
    """

    now_ns: int
    clock_ns: int
    busy_ns: int


def stood_still_ns(before: ClockReading, after: ClockReading) -> int:
    """Return for how long nothing ran between two looks, where one tick was due; 0 for a moment."""
    late_ns = after.clock_ns - before.clock_ns - TICK_NS
    still_ns = late_ns - (after.busy_ns - before.busy_ns)
    return still_ns if still_ns >= LEAST_NS else 0


class Standstill:
    """Ticks, and adds up for how long nothing ran.

    Args:
        now_ns: Tells the run's time.
        tell: Hears of each time that it stood still, in the thread that has noticed.
    """

    def __init__(self, now_ns: Callable[[], int], tell: Tell) -> None:
        self._now_ns = now_ns
        self._tell = tell
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
        # Time that is known to be spent is read last, so that it is never less than it was.
        now_ns, clock_ns = self._now_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return ClockReading(now_ns, clock_ns, self._busy.sum_ns())


class _BusyTime:
    """The time of which something of ours is known to have made use.

    Attributes:
        ticker: The thread that ticks; 0 before there is one.
    """

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self._clock = time.pthread_getcpuclockid(_get_ident())
        self.ticker = 0

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
