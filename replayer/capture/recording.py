"""One recording: strace beside the command or at a running process, until it ends.

How each is ended differs, and matters. A command runs under seccomp's filter: as soon as strace
lets go of a process, by whatever signal, every recorded call of that process fails with ENOSYS. So
strace is never signalled there; the processes are, and strace ends after the last of them. A
running process that was attached to has no filter: strace lets go of it on SIGINT, unharmed, which
it gets whatever ends us: the kernel sends it where we are killed. SIGKILL is never sent to strace.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from replayer.capture.log import StraceLog
from replayer.capture.processes import (
    computed_below,
    family_of,
    has_ended,
    is_running,
    tracees_of,
    tracer_of,
)
from replayer.capture.progress import Progress, say
from replayer.capture.refusal import LostLogError
from replayer.capture.signals import Inbox, Notice, Sender
from replayer.supervisor import follow

__all__ = ["StraceRecording", "Watch", "record_attached", "record_command"]

TICK_SECONDS = 0.2
GRACE_NS = 10 * 10**9  # chosen: what processes have to end in after SIGTERM
SETTLED_NS = 10**9  # chosen: attaching to hundreds of processes takes less
DETACH_NS = 60 * 10**9  # chosen: a process that hangs in the kernel cannot be let go of before
_BY_SIGNAL = 128  # shells add it to the number of the signal that ended a command
_PATIENCE = 2  # signals that a command may ignore before all it started is told


@dataclass(frozen=True)
class Watch:
    """What stands around a recording.

    Attributes:
        log: What strace writes.
        inbox: Signals.
        progress: Who is told.
        attaching: Told strace's number as soon as it begins to attach; may wait until it has.
        pids: The processes that were named, where they are attached to.
    """

    log: StraceLog
    inbox: Inbox
    progress: Progress
    attaching: Callable[[int], object] | None = None
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class StraceRecording:
    """What came of it.

    Attributes:
        status: The exit status to pass on.
        first_process: The recorded process; None if nothing was recorded.
        user_ns: CPU time that the command and all it waited for used outside of the kernel, in
            steps of 10 ms; None where a process was attached to.
        remarks: What the user must know about the recording, a sentence each.
    """

    status: int
    first_process: int | None
    user_ns: int | None
    remarks: tuple[str, ...]


class _Ender(Protocol):
    """Decides what happens while a recording runs."""

    def receive(self, notice: Notice) -> None:
        """Somebody wants it to end."""

    def tick(self) -> bool:
        """Look after it; False to stop waiting."""


def record_command(words: Sequence[str], watch: Watch) -> StraceRecording:
    """Run a command line that launches a command, to the end of all that it starts."""
    with subprocess.Popen(  # noqa: S603 - the user's own words
        words,
        preexec_fn=watch.inbox.release,  # noqa: PLW1509 - it sets a mask, nothing else
        close_fds=False,
    ) as strace:
        remarks: list[str] = []
        _wait(strace, watch, _CommandEnder(strace.pid, watch.log, remarks))
        # Strace is the command's parent, and is itself known as long as nobody has waited for it.
        user_ns = computed_below(strace.pid)
    status = strace.returncode
    if _is_lost(watch.log):
        say(f"the command ended with exit status {_passed_on(status)}")
        raise LostLogError(watch.log.path, watch.log.reason)
    if status < 0 and not watch.log.tells_of_the_commands_death():
        remarks.append(_broken(status, watch.log.first_process()))
    return StraceRecording(
        status=_passed_on(status),
        first_process=watch.log.first_process(),
        user_ns=user_ns,
        remarks=tuple(remarks),
    )


def record_attached(words: Sequence[str], watch: Watch, errors: Path) -> StraceRecording:
    """Run a command line that attaches, until the processes end or somebody ends it.

    Raises:
        LostLogError: What was recorded is gone; strace has let go of the processes.
    """
    parent = os.getpid()

    def prepare() -> None:
        watch.inbox.release()
        follow(parent, signal.SIGINT)

    with errors.open("wb") as file:
        # A session of its own: a Ctrl-C is ours to pass on, once.
        strace = subprocess.Popen(  # noqa: S603
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            preexec_fn=prepare,  # noqa: PLW1509 - as above, and what it is to get when we end
            start_new_session=True,
        )
    remarks: list[str] = []
    try:
        if watch.attaching is not None:
            watch.attaching(strace.pid)
        _wait(strace, watch, _AttachedEnder(strace, watch, remarks))
    except BaseException:
        _let_go(strace)
        raise
    status = strace.poll()
    if _is_lost(watch.log):
        raise LostLogError(watch.log.path, watch.log.reason)
    return StraceRecording(
        status=1 if status not in (0, None, -signal.SIGINT, -signal.SIGTERM) else 0,
        first_process=watch.log.first_process(),
        user_ns=None,
        remarks=tuple(remarks),
    )


def _passed_on(status: int) -> int:
    """Return the exit status that a shell would have for what ended so."""
    return status if status >= 0 else _BY_SIGNAL - status


def _is_lost(log: StraceLog) -> bool:
    """Look once more: a mount may have been away for a moment only."""
    log.bound()
    return log.trouble is not None


def _let_go(strace: subprocess.Popen[bytes]) -> None:
    """Have strace detach, where nobody will wait for the processes any more."""
    strace.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        strace.wait(DETACH_NS / 1e9)


def _broken(status: int, command: int | None) -> str:
    """Strace ends by the signal that ended its command; here it was its own end."""
    rest = ""
    if command is not None and is_running(command):
        rest = (
            f"; process {command} is still running, and its recorded calls fail with ENOSYS: end it"
        )
    return f"strace was killed by signal {-status}; the recording stopped{rest}"


def _wait(strace: subprocess.Popen[bytes], watch: Watch, ender: _Ender) -> None:
    while not has_ended(strace.pid):
        notice = watch.inbox.wait(TICK_SECONDS)
        if notice is not None:
            watch.progress.clear()
            ender.receive(notice)
        watch.log.bound()
        if watch.log.trouble is None:
            watch.progress.recording(watch.log)
        if not ender.tick():
            break
    watch.progress.clear()


class _CommandEnder:
    """Ends processes and never strace."""

    def __init__(self, strace: int, log: StraceLog, remarks: list[str]) -> None:
        self._strace = strace
        self._log = log
        self._remarks = remarks
        self._received = 0
        self._kill_at_ns: int | None = None
        self._is_told_of_rest = False
        self._is_told_of_limit = False

    def receive(self, notice: Notice) -> None:
        """Pass a signal on; the more often it comes, the further it reaches."""
        self._received += 1
        command = self._log.first_process()
        if command is not None and is_running(command) and self._received <= _PATIENCE:
            if notice.sender is Sender.PROCESS:  # a terminal has told the command itself
                _send([command], notice.signal)
            say("waiting for the command to end; the calls recorded so far are kept")
        elif self._kill_at_ns is None:
            self._kill_at_ns = time.monotonic_ns() + GRACE_NS
            say("ending all recorded processes")
            _send(tracees_of(self._strace), signal.SIGTERM)
        else:
            self._kill_at_ns = time.monotonic_ns()

    def tick(self) -> bool:
        """Say when only children are left, and kill those that have outstayed their grace."""
        if self._kill_at_ns is not None and time.monotonic_ns() >= self._kill_at_ns:
            _send(tracees_of(self._strace), signal.SIGKILL)
            self._kill_at_ns = time.monotonic_ns() + GRACE_NS
        self._tell_of_rest()
        if self._log.is_full and not self._is_told_of_limit:
            self._is_told_of_limit = True
            say(f"the log {self._log.reason}: recording stops")
        return True

    def _tell_of_rest(self) -> None:
        command = self._log.first_process()
        if self._is_told_of_rest or command is None or is_running(command):
            return
        rest = tracees_of(self._strace)
        if rest:
            self._is_told_of_rest = True
            self._remarks.append(
                f"{len(rest)} processes outlived the command and were recorded until they ended"
            )
            numbers = ", ".join(str(pid) for pid in rest[:8])
            say(f"the command has ended; its descendants are still recorded (process {numbers})")
            say("Ctrl-C ends these processes; record a service with -p")


class _AttachedEnder:
    """Lets go of the processes."""

    def __init__(self, strace: subprocess.Popen[bytes], watch: Watch, remarks: list[str]) -> None:
        self._strace = strace
        self._pids = watch.pids
        self._look_at_ns: int | None = time.monotonic_ns() + SETTLED_NS
        self._log = watch.log
        self._remarks = remarks
        self._give_up_at_ns: int | None = None

    def receive(self, _: Notice) -> None:
        """Detach; again by another signal if the first was not enough."""
        if self._give_up_at_ns is None:
            self._detach(signal.SIGINT)
        else:
            _send([self._strace.pid], signal.SIGTERM)

    def tick(self) -> bool:
        """Detach at the limit; stop waiting where a process cannot be let go of."""
        if self._look_at_ns is not None and time.monotonic_ns() >= self._look_at_ns:
            self._look_at_ns = None
            self._tell_of_missed()
        if self._give_up_at_ns is None:
            if self._log.is_full:
                say(f"the log {self._log.reason}: detaching")
                self._detach(signal.SIGINT)
            return True
        if time.monotonic_ns() < self._give_up_at_ns:
            return True
        self._remarks.append(
            f"strace (process {self._strace.pid}) waits for a process that hangs in the kernel, "
            "and detaches later; do not kill it with SIGKILL"
        )
        return False

    def _tell_of_missed(self) -> None:
        """Children that were started between the look at the family and the attaching."""
        strace = self._strace.pid
        families = (family_of(pid) for pid in self._pids)
        missed = [pid for family in families for pid in family if tracer_of(pid) != strace]
        if missed and tracees_of(strace):
            numbers = ", ".join(str(pid) for pid in missed[:8])
            self._remarks.append(
                f"not recorded, because they were just starting: process {numbers}"
            )

    def _detach(self, number: signal.Signals) -> None:
        self._give_up_at_ns = time.monotonic_ns() + DETACH_NS
        _send([self._strace.pid], number)


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            say(f"process {pid} belongs to another user: it cannot be ended")
