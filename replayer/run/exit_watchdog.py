"""Ends a master or worker that was told to end and does not, whatever it waits for.

A thread of the system's own hears of signals as they come and looks at the clock. It needs neither
the hub nor the main thread, which may wait for a machine that is gone, or for a mount. Other ways
to end come first: this one leaves folders on targets behind, and says where.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable

from gevent.monkey import get_original

from replayer.errors import EXIT_ENVIRONMENT
from replayer.run.interruption import SIGNALS
from replayer.supervisor import ECHO_S, end_plainly, leave_unflushed

OVERTIME_S = 5.0
"""What a process has to end in beside its stop timeout (a promise of the README)."""
TIDY_S = 2.0  # chosen, of the above: then folders are left, and results shown
LAST_S = 1.5  # chosen, of the above: for the run folder's end and the last words

# Real ones: the patched ones are greenlets, and stand in line with all others.
_start_thread: Callable[..., object] = get_original("_thread", "start_new_thread")
_sleep: Callable[[float], None] = get_original("time", "sleep")
_select: Callable[..., tuple[list[int], list[int], list[int]]] = get_original("select", "select")

Words = Callable[[], Iterable[str]]


class ExitWatchdog:
    """Waits for the signals of one process, and for the time that it has from then on."""

    def __init__(self, limit_s: float, leave: Callable[[int], object] = leave_unflushed) -> None:
        self._limit_s = limit_s
        self._leave = leave
        self._presses = 0
        self._heard_s: dict[int, float] = {}
        self._deadline_s: float | None = None
        self.last_words: Words = tuple
        """Brings the run folder to its end, and returns what is left where, in lines."""

    def start(self) -> None:
        """Listen from now on; to be called in the main thread."""
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        _start_thread(self._watch, (reading,))

    def _watch(self, reading: int) -> None:
        while True:
            left_s = None
            if self._deadline_s is not None:
                left_s = max(self._deadline_s - time.monotonic(), 0.0)
            ready, _, _ = _select([reading], [], [], left_s)
            for number in os.read(reading, 4096) if ready else b"":
                self.hear(number, time.monotonic())
            if self.is_due(time.monotonic()):
                self._end()
                return

    def hear(self, number: int, now_s: float) -> None:
        """Take note of a signal: Ctrl-C twice, or any other wish to end once, sets the time."""
        is_echo = now_s - self._heard_s.get(number, -ECHO_S) < ECHO_S
        if number not in SIGNALS or is_echo:
            return
        self._heard_s[number] = now_s
        self._presses += number == signal.SIGINT
        if self._deadline_s is None and (number != signal.SIGINT or self._presses > 1):
            self._deadline_s = now_s + self._limit_s - LAST_S

    def is_due(self, now_s: float) -> bool:
        """Whether the process has had its time."""
        return self._deadline_s is not None and now_s >= self._deadline_s

    def _end(self) -> None:
        """Say what is left, if that can be said in time, and end the process."""
        _start_thread(self._speak, ())
        _sleep(LAST_S / 3)
        self._leave(EXIT_ENVIRONMENT)

    def _speak(self) -> None:
        first = f"did not end within {self._limit_s:g} s of the signal, and is killed now"
        for text in (first, *self.last_words()):
            os.write(2, f"replayer: {text}\n".encode(errors="backslashreplace"))


_watchdogs: list[ExitWatchdog] = []
"""That of this process, once there is one."""


def tidies_for(stop_timeout_s: float) -> float:
    """Return for how long a process may remove folders once it was told to end."""
    return stop_timeout_s + TIDY_S


def watch_exit(stop_timeout_s: float) -> None:
    """Have this process end in time; signals must have handlers of Python's own."""
    watchdog = ExitWatchdog(stop_timeout_s + OVERTIME_S)
    _watchdogs[:] = [watchdog]
    watchdog.start()
    end_plainly()  # while Python is taken apart, no thread runs


def last_words(words: Words = tuple) -> None:
    """Say what is to be done and told should this process not end by itself; else nothing."""
    for watchdog in _watchdogs:
        watchdog.last_words = words
