"""Ctrl-C, SIGTERM and SIGHUP: once asks the run to end gracefully, Ctrl-C twice ends it at once.

A handler only raises a level; whoever waits looks at it. It runs between two bytecodes of whatever
greenlet is running, so it must not switch, block or raise.
"""

import math
import signal
import time
from collections.abc import Callable
from enum import IntEnum
from types import FrameType

from replayer.errors import EXIT_INCONCLUSIVE, ReplayerError
from replayer.supervisor import interrupt, is_echo, take_interrupt

GOES_ON = "removing the folders of the run; another Ctrl-C leaves them behind"

IS_NOHUP = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
"""Whether this process was begun to outlive its terminal."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *(() if IS_NOHUP else (signal.SIGHUP,)))


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: a signal that is ignored would not be heard by the watchdog of exits either."""


class Level(IntEnum):
    """How urgently the run shall end."""

    NONE = 0
    GRACEFUL = 1
    AT_ONCE = 2


class InterruptedRunError(ReplayerError):
    """The run was ended by its user before it could measure."""

    exit_code = EXIT_INCONCLUSIVE


class Interruption:
    """The wish to end, as a level that only rises."""

    def __init__(self, tidy_s: float | None = None) -> None:
        self._tidy_s = tidy_s
        """For how long folders may be removed or laid out anew once the run must end: after Ctrl-C
        twice, or another signal. None: for as long as that takes."""
        self._tidy_until_s = math.inf
        self.level = Level.NONE
        self.presses = 0
        self.since_s: float | None = None
        """When the wish was first uttered, on the monotonic clock; None: it was not."""
        self.has_abandoned = False
        """Whether what was done to the folders at the run's end was abandoned."""
        self._before_removal: int | None = None
        self._before_restoring: int | None = None
        self._has_spared = False
        self._on_urgent: list[Callable[[], None]] = []

    def watch(self) -> None:
        """Take over the signals; they come in the main thread. A press before that counts."""
        for number in SIGNALS:
            signal.signal(number, self._handle)
        if take_interrupt() and not self.presses:
            self.presses = 1
            self.ask()

    def unwatch(self) -> None:
        """Give the signals their usual meaning back."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, interrupt)

    def settle(self) -> None:
        """Let Ctrl-C be without effect from now on: the process ends with the run's exit code."""
        self.unwatch()
        signal.signal(signal.SIGINT, _ignore)

    def on_urgent(self, action: Callable[[], None]) -> None:
        """Have an action done when the run shall end at once; it must not block."""
        self._on_urgent.append(action)

    def ask(self) -> None:
        """Ask for a graceful end, as one Ctrl-C does; of a page, not of a person at a terminal."""
        self._note()
        self.level = max(self.level, Level.GRACEFUL)

    def check(self, doing: str) -> None:
        """Raise InterruptedRunError, which says what is interrupted, when the run shall end."""
        if self.level > Level.NONE:
            raise InterruptedRunError(f"interrupted while {doing}")

    def abandons_removal(self, say: Callable[[str], None]) -> bool:
        """Whether the removal of the run's folders shall be left; to be asked while it goes on.

        The first signal since the first of them is removed lets that go on, and is told so.
        """
        if self._before_removal is None:
            self._before_removal = self.presses
        came = self.presses - self._before_removal
        if came and not self._has_spared:
            self._has_spared = True
            say(GOES_ON)
        self.has_abandoned |= came > 1 or self._is_late()
        return self.has_abandoned

    def ends_restoring(self) -> bool:
        """Whether kept folders shall be laid out anew no further; to be asked while it goes on.

        Every signal since the first of them is laid out says so, and Ctrl-C twice before.
        """
        if self._before_restoring is None:
            self._before_restoring = self.presses
        came = self.presses > self._before_restoring or self._is_late()
        return came or self.has_abandoned or self.level is Level.AT_ONCE

    def leave_folders(self) -> None:
        """Have folders be left as they are, as a worker's master tells it after its own Ctrl-C."""
        self.has_abandoned = True

    def _is_late(self) -> bool:
        return time.monotonic() >= self._tidy_until_s

    def _note(self) -> None:
        if self.since_s is None:
            self.since_s = time.monotonic()

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if is_echo(number):
            return
        self.presses += 1
        self._note()
        # A supervisor may repeat SIGTERM, and a shell its terminal's SIGHUP; only a person presses
        # Ctrl-C twice in a hurry.
        urgent = number == signal.SIGINT and self.level > Level.NONE
        if self._tidy_s is not None and (urgent or number != signal.SIGINT):
            self._tidy_until_s = min(self._tidy_until_s, time.monotonic() + self._tidy_s)
        self.level = Level.AT_ONCE if urgent or self.level is Level.AT_ONCE else Level.GRACEFUL
        if urgent:
            for action in self._on_urgent:
                action()
