"""Recording with strace: beside the command or at a running process, until it ends.

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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from replayer.capture.calibration import Calibration, measure_tracer
from replayer.capture.ending import CommandEnder, Watch, send_signal, status_of, wait_for_end
from replayer.capture.log import StraceLog
from replayer.capture.positions import Positions
from replayer.capture.processes import (
    computed_below,
    families_of,
    family_of,
    has_ended,
    is_running,
    read_state,
    tracees_of,
    tracer_of,
)
from replayer.capture.progress import Progress, say
from replayer.capture.recorder import Recorded
from replayer.capture.refusal import LostLogError, TracerError, explain_refusal
from replayer.capture.signals import Inbox, Notice
from replayer.capture.strace import (
    attach_words,
    find_strace,
    launch_words,
    probe_words,
    try_strace,
)
from replayer.supervisor import before_leaving, follow

__all__ = ["StraceRecorder", "StraceWatch", "record_attached", "record_command"]

LET_GO_S = 1  # chosen: as for SETTLED_NS
SETTLED_NS = 10**9  # chosen: attaching to hundreds of processes takes less
DETACH_NS = 60 * 10**9  # chosen: a process that hangs in the kernel cannot be let go of before


def _check_untraced(family: Sequence[int]) -> None:
    for member in family:
        tracer = tracer_of(member)
        if tracer:
            message = f"-p: process {member} is already traced by process {tracer}"
            raise TracerError(message, hint="only one program can trace a process")


@dataclass(frozen=True)
class StraceWatch(Watch):
    """What stands around a recording of strace."""

    log: StraceLog
    attaching: Callable[[int], object] | None = None
    """Told strace's number as soon as it begins to attach; may wait until it has."""
    pids: tuple[int, ...] = ()
    """The processes that were named, where they are attached to."""


@dataclass(frozen=True)
class _TracedFamily:
    """What strace has started."""

    strace: int
    log: StraceLog

    def command(self) -> int | None:
        """Return the first of them."""
        return self.log.first_process()

    def members(self) -> list[int]:
        """Return those that live."""
        return tracees_of(self.strace)


def record_command(words: Sequence[str], watch: StraceWatch) -> Recorded:
    """Run a command line that launches a command, to the end of all that it starts."""
    strace = subprocess.Popen(  # noqa: S603 - the user's own words
        words,
        preexec_fn=watch.inbox.release,  # noqa: PLW1509 - it sets a mask, nothing else
        close_fds=False,
    )
    remarks: list[str] = []
    family = _TracedFamily(strace.pid, watch.log)
    wait_for_end(lambda: has_ended(strace.pid), watch, CommandEnder(family, watch.log, remarks))
    # Strace is the command's parent, and is itself known as long as nobody has waited for it.
    user_ns = computed_below(strace.pid)
    status = strace.poll()
    passed = status_of(status)
    if _is_lost(watch.log):
        say(f"the command ended with exit status {passed}")
        raise LostLogError(watch.log.path, watch.log.reason)
    if status is not None and status < 0 and not watch.log.tells_of_the_commands_death():
        remarks.append(_broken(status, watch.log.first_process()))
    return Recorded(
        status=passed,
        first_process=watch.log.first_process(),
        user_ns=user_ns,
        is_left=status is None,
        remarks=tuple(remarks),
    )


def record_attached(words: Sequence[str], watch: StraceWatch, errors: Path) -> Recorded:
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
    before_leaving(partial(strace.send_signal, signal.SIGINT))
    remarks: list[str] = []
    try:
        if watch.attaching is not None:
            watch.attaching(strace.pid)
        ender = _AttachedEnder(strace, watch, remarks)
        wait_for_end(lambda: has_ended(strace.pid), watch, ender)
    except BaseException:
        _let_go(strace)
        raise
    status = strace.poll()
    if _is_lost(watch.log):
        raise LostLogError(watch.log.path, watch.log.reason)
    return Recorded(
        status=1 if status not in (0, None, -signal.SIGINT, -signal.SIGTERM) else 0,
        first_process=watch.log.first_process(),
        user_ns=None,
        remarks=tuple(remarks),
    )


def _is_lost(log: StraceLog) -> bool:
    """Look once more: a mount may have been away for a moment only."""
    log.bound()
    return log.trouble is not None


def _let_go(strace: subprocess.Popen[bytes]) -> None:
    """Have strace detach; it waits for processes that hang in the kernel, and nobody for it."""
    strace.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        strace.wait(LET_GO_S)


def _broken(status: int, command: int | None) -> str:
    """Strace ends by the signal that ended its command; here it was its own end."""
    rest = ""
    if command is not None and is_running(command):
        rest = (
            f"; process {command} is still running, and its recorded calls fail with ENOSYS: end it"
        )
    return f"strace was killed by signal {-status}; the recording stopped{rest}"


class _AttachedEnder:
    """Lets go of the processes."""

    waits_for_others = False

    def __init__(
        self, strace: subprocess.Popen[bytes], watch: StraceWatch, remarks: list[str]
    ) -> None:
        self._strace = strace
        self._pids = watch.pids
        self._look_at_ns: int | None = time.monotonic_ns() + SETTLED_NS
        self._log = watch.log
        self._remarks = remarks
        self._give_up_at_ns: int | None = None

    def receive(self, _: Notice) -> None:
        """Detach; somebody who asks again does not want to wait for it."""
        if self._give_up_at_ns is None:
            self._detach(signal.SIGINT)
        else:
            raise KeyboardInterrupt

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
        send_signal([self._strace.pid], number)


class StraceRecorder:
    """Records with strace.

    Raises:
        TracerError: There is no strace that can be used.
    """

    name: Literal["strace"] = "strace"
    log_format: Literal["strace"] = "strace"

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._strace = find_strace()
        self._folder = folder
        self.log = StraceLog(folder / "log.strace", limit_bytes)

    @property
    def path(self) -> str:
        """Its executable."""
        return self._strace.path

    @property
    def version(self) -> str:
        """The version as it is written."""
        return self._strace.text

    def check(self) -> None:
        """Really record ``true``, and leave out the filter where it does not work."""
        self._strace = try_strace(self._strace, self._folder)

    def calibrate(self, what: Literal["command", "attached"]) -> Calibration | None:
        """Measure what it adds to calls and to the time between them."""
        log = self._folder / "calibration.strace"
        return measure_tracer(probe_words(self._strace, log, what), log)

    def record_command(self, command: Sequence[str], inbox: Inbox, progress: Progress) -> Recorded:
        """Run a command under strace, to the end of all that it starts."""
        words = launch_words(self._strace, self.log.path, command)
        return replace(
            record_command(words, StraceWatch(self.log, inbox, progress)), words=tuple(words)
        )

    def record_attached(self, pids: Sequence[int], inbox: Inbox, progress: Progress) -> Recorded:
        """Have strace attach to processes and their descendants, until somebody ends it."""
        family = families_of(pids)
        _check_untraced(family)
        words = attach_words(self._strace, self.log.path, family)
        positions = Positions(read_state(family))
        errors = self._folder / "strace.err"
        watch = StraceWatch(self.log, inbox, progress, positions.note, tuple(pids))
        recorded = record_attached(words, watch, errors)
        if recorded.status != 0 and self.log.size_bytes == 0:
            raise explain_refusal(errors.read_text(errors="replace").strip())
        states = positions.at_begin(self.log.path)
        return replace(recorded, words=tuple(words), states=states)
