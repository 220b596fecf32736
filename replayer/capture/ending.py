"""How a recording ends: the wait for it, and signals that are passed on meanwhile."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from replayer.capture.processes import hangs, is_running
from replayer.capture.progress import GrowingLog, Progress, say
from replayer.capture.signals import Inbox, Notice, Sender
from replayer.supervisor import EXIT_INTERRUPTED

__all__ = [
    "BoundedLog",
    "CommandEnder",
    "Ender",
    "RecordedFamily",
    "Watch",
    "passed_on",
    "send_signal",
    "status_of",
    "wait_for_end",
]

TICK_SECONDS = 0.2
HANGS_TICKS = 5  # chosen: a second; what a disk keeps so long is left behind, too
GRACE_NS = 10 * 10**9  # chosen: what processes have to end in after SIGTERM
_BY_SIGNAL = 128  # shells add it to the number of the signal that ended a command
_PATIENCE = 2  # signals that a command may ignore before all it started is told


class BoundedLog(GrowingLog, Protocol):
    """What a recorder writes, up to a limit."""

    path: Path
    trouble: str | None
    """Why it could not be bounded or written when that was tried last; None if it could."""

    @property
    def is_full(self) -> bool:
        """Whether no more of it is kept."""

    @property
    def reason(self) -> str:
        """Why it is full, in words to follow its name."""

    def bound(self) -> None:
        """Hold it to its limit."""


class RecordedFamily(Protocol):
    """The command that is recorded, and all that it started."""

    def command(self) -> int | None:
        """Return the command's number, once it is known."""

    def members(self) -> list[int]:
        """Return the processes that are recorded and live."""


@dataclass(frozen=True)
class Watch:
    """What stands around a recording."""

    log: BoundedLog
    """What the recorder writes."""
    inbox: Inbox
    """Signals."""
    progress: Progress
    """Who is told."""


class Ender(Protocol):
    """Decides what happens while a recording runs."""

    waits_for_others: bool
    """Whether it goes on when somebody wants it to end, as a command may."""

    def receive(self, notice: Notice) -> None:
        """Somebody wants it to end."""

    def tick(self) -> bool:
        """Look after it; False to stop waiting."""


def passed_on(status: int) -> int:
    """Return the exit status that a shell would have for what ended so."""
    return status if status >= 0 else _BY_SIGNAL - status


def status_of(status: int | None) -> int:
    """Return the exit status to pass on; of what has not ended (None), that it was left."""
    return EXIT_INTERRUPTED if status is None else passed_on(status)


def wait_for_end(is_over: Callable[[], bool], watch: Watch, ender: Ender) -> None:
    """Wait until a recording is over, or an end was decided on."""
    while not is_over():
        notice = watch.inbox.wait(TICK_SECONDS)
        if notice is not None:
            watch.progress.clear()
            ender.receive(notice)
            if ender.waits_for_others:
                watch.inbox.go_on()
        watch.log.bound()
        if watch.log.trouble is None:
            watch.progress.recording(watch.log)
        if not ender.tick():
            break
    watch.progress.clear()


class CommandEnder:
    """Ends processes and never strace.

    Attributes:
        waits_for_others: Until a second wish finds that the processes hang.
    """

    def __init__(self, family: RecordedFamily, log: BoundedLog, remarks: list[str]) -> None:
        self._family = family
        self._log = log
        self._remarks = remarks
        self._received = 0
        self._kill_at_ns: int | None = None
        self._is_told_of_rest = False
        self._is_told_of_limit = False
        self._hanging: dict[int, int] = {}
        self.waits_for_others = True

    def receive(self, notice: Notice) -> None:
        """Pass a signal on; the more often it comes, the further it reaches."""
        self._received += 1
        command = self._family.command()
        if command is not None and is_running(command) and self._received <= _PATIENCE:
            if notice.sender is Sender.PROCESS:  # a terminal has told the command itself
                send_signal([command], notice.signal)
            say("waiting for the command to end; the calls recorded so far are kept")
        elif self._kill_at_ns is None:
            self._kill_at_ns = time.monotonic_ns() + GRACE_NS
            say("ending all recorded processes")
            send_signal(self._family.members(), signal.SIGTERM)
        else:
            self._kill_at_ns = time.monotonic_ns()

    def tick(self) -> bool:
        """Say when only children are left, and kill those that have outstayed their grace."""
        if self._kill_at_ns is not None and time.monotonic_ns() >= self._kill_at_ns:
            send_signal(self._family.members(), signal.SIGKILL)
            self._kill_at_ns = time.monotonic_ns() + GRACE_NS
        self._tell_of_rest()
        if self._received >= _PATIENCE:
            self._leave_hanging()
        if self._log.is_full and not self._is_told_of_limit:
            self._is_told_of_limit = True
            say(f"the log {self._log.reason}: recording stops")
        return self.waits_for_others

    def _leave_hanging(self) -> None:
        """End the recording before processes that hang in the kernel: no signal ends them."""
        known, before = {*self._family.members()}, self._hanging
        if (command := self._family.command()) is not None:
            known.add(command)
        self._hanging = {pid: before.get(pid, 0) + 1 for pid in hangs(known)}
        left = [pid for pid, ticks in self._hanging.items() if ticks >= HANGS_TICKS]
        if left and self.waits_for_others:
            self.waits_for_others = False
            numbers = ", ".join(map(str, sorted(left)[:8]))
            self._remarks.append(
                f"the recording ended before process {numbers}, which hangs in the kernel"
            )

    def _tell_of_rest(self) -> None:
        command = self._family.command()
        if self._is_told_of_rest or command is None or is_running(command):
            return
        rest = self._family.members()
        if rest:
            self._is_told_of_rest = True
            self._remarks.append(
                f"{len(rest)} processes outlived the command and were recorded until they ended"
            )
            numbers = ", ".join(str(pid) for pid in rest[:8])
            say(f"the command has ended; its descendants are still recorded (process {numbers})")
            say("Ctrl-C ends these processes; record a service with -p")


def send_signal(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to those that are there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            say(f"process {pid} belongs to another user: it cannot be ended")
