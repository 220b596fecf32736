"""Runs of a command without the tracer: how long it takes by itself, and what of that it computes.

A tracer makes the time between two calls ten times as long as it was, and no log tells by how much
exactly. What a command computes is known from runs that nobody watched: the kernel counts its CPU
time, and over enough runs its clock ticks add up to a mean.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import BinaryIO

from replayer.capture.processes import has_ended
from replayer.capture.progress import Progress
from replayer.capture.signals import Inbox, Notice
from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen

__all__ = ["Preparation", "UntracedRuns", "on_one_cpu", "run_untraced"]

ALONE = 1.05
"""A command with more CPU time than this share of its time works on several CPUs (chosen)."""
_LAST_WORDS_BYTES = 2000
_TICK_SECONDS = 0.2
_NS = 10**9


class UntracedRuns(Frozen):
    """What a command took in each run without the tracer, in nanoseconds."""

    elapsed_ns: tuple[int, ...]
    user_ns: tuple[int, ...]
    """CPU time outside of the kernel, of it and of all it waited for."""
    system_ns: tuple[int, ...]
    """CPU time in the kernel."""

    @property
    def count(self) -> int:
        """How many runs there were."""
        return len(self.elapsed_ns)

    @property
    def median_ns(self) -> int:
        """How long the command takes."""
        return round(median(self.elapsed_ns))

    @property
    def computed_ns(self) -> int:
        """What it computes: single runs tell that in a few clock ticks, so the mean."""
        return round(mean(self.user_ns))

    @property
    def waited_ns(self) -> int:
        """In how much of its time it had no CPU, as far as it works on one at a time."""
        used_ns = mean(self.user_ns) + mean(self.system_ns)
        return max(round(mean(self.elapsed_ns) - used_ns), 0)

    @property
    def is_alone(self) -> bool:
        """Whether it works on one CPU at a time."""
        return sum(self.user_ns) + sum(self.system_ns) <= ALONE * sum(self.elapsed_ns)


@dataclass(frozen=True)
class Preparation:
    """What brings the files into the state that a command is to find.

    Attributes:
        command: What a shell runs for that; None: nothing.
        roots: Directories whose file systems write out afterwards what it left in memory: else
            that would go on beside the command, and take from its time.
    """

    command: str | None
    roots: Sequence[Path]


def run_untraced(
    command: Sequence[str], preparation: Preparation, times: int, progress: Progress
) -> UntracedRuns:
    """Run a command so many times, without input, and without its output.

    Args:
        command: Its words.
        preparation: What is done before each time, and once more at the end.
        times: At least 1.
        progress: Told which one it is.

    Raises:
        ReplayerError: It, or what prepares it, ended with another exit status than 0.
        KeyboardInterrupt: A signal came to end this; what it found running was killed.
    """
    rows = []
    with Inbox() as inbox:
        for number in range(1, times + 1):
            progress.line(f"rehearsing without strace · {number:,} of {times:,}")
            _prepare(preparation, inbox)
            rows.append(_time(command, f"rehearsal {number} of {times}", inbox))
        progress.clear()
        _prepare(preparation, inbox)
        _heed(inbox.wait(0))
    elapsed, user, system = zip(*rows, strict=True)
    return UntracedRuns(elapsed_ns=elapsed, user_ns=user, system_ns=system)


def _prepare(preparation: Preparation, inbox: Inbox) -> None:
    shell = preparation.command
    if shell is None:
        return
    _time(("/bin/sh", "-c", shell), f"--prepare '{shell}'", inbox)
    there = [str(_nearest(root)) for root in preparation.roots]
    _time(("sync", "-f", "--", *there), "sync after --prepare", inbox)


def _nearest(root: Path) -> Path:
    """Return a root, or what is there above it on its file system if the preparation removed it."""
    return next(place for place in (root, *root.parents) if place.exists())


@contextmanager
def on_one_cpu(rehearsals: UntracedRuns | None) -> Iterator[int | None]:
    """Start processes on one CPU meanwhile, if a command works on one at a time; yield which.

    A tracer that shares the CPU with what it stops wakes it, and is woken, three times as fast as
    one beside it, and much more evenly (strace 6.1: 15 instead of 60 µs between two calls).
    """
    allowed = os.sched_getaffinity(0)
    if rehearsals is None or not rehearsals.is_alone or len(allowed) == 1:
        yield None
        return
    cpu = max(allowed)  # interrupts are rather on the first one
    os.sched_setaffinity(0, {cpu})
    try:
        yield cpu
    finally:
        os.sched_setaffinity(0, allowed)


def _time(command: Sequence[str], what: str, inbox: Inbox) -> tuple[int, int, int]:
    """Run it to its end: elapsed, user and system time."""
    with tempfile.TemporaryFile() as errors:
        status, took = _run(command, errors, inbox)
        if status == 0:
            return took
        said = _last_line(errors)
    ended = f"{what} ended with exit status {status}"
    raise ReplayerError(
        f"{ended}: {said}" if said else ended,
        hint="nothing was recorded; --prepare 'COMMAND' restores what the previous run changed",
    )


def _last_line(errors: BinaryIO) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(size - _LAST_WORDS_BYTES, 0))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _run(
    command: Sequence[str], errors: BinaryIO, inbox: Inbox
) -> tuple[int, tuple[int, int, int]]:
    begin_ns = time.monotonic_ns()
    pid = _start(command, errors, inbox)
    try:
        while not has_ended(pid):
            _heed(inbox.wait(_TICK_SECONDS))
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    elapsed_ns = time.monotonic_ns() - begin_ns
    _, status, used = os.wait4(pid, 0)
    user_ns, system_ns = round(used.ru_utime * _NS), round(used.ru_stime * _NS)
    return os.waitstatus_to_exitcode(status), (elapsed_ns, user_ns, system_ns)


def _start(command: Sequence[str], errors: BinaryIO, inbox: Inbox) -> int:
    """Start it in a session of its own, so that all that it has started can be killed."""
    try:
        return inbox.spawn(
            command,
            [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
            ],
            setsid=True,
        )
    except OSError as error:
        message = f"{command[0]}: cannot be executed: {error.strerror}"
        hint = "nothing was recorded; a script needs a first line such as #!/bin/sh"
        raise ReplayerError(message, hint=hint) from error


def _heed(notice: Notice | None) -> None:
    if notice is not None:
        raise KeyboardInterrupt
