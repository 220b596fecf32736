"""Brings the client's caches into a stated state before a segment, and records how it was done.

Cold: the user's remount command if given; else the machine's caches dropped, where that is
permitted; else every file synced and evicted. Warm: everything written out and read once. As-is:
nothing is done. The remount command keeps the terminal: sudo may ask for a password.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import gevent

from replayer.errors import ReplayerError
from replayer.run.descendants import Descendants
from replayer.run.interruption import Interruption
from replayer.run.options import CacheState
from replayer.run.target_dir import TargetDir, may_evict_machine
from replayer.run.targets import MountError
from replayer.supervisor import give_up_on


@dataclass(frozen=True)
class CacheProcedure:
    """How the caches of a target are brought into their state."""

    words: str
    """What is done, as reports say it."""
    prepare: Callable[[TargetDir], None] = lambda _: None
    """Does it, before each segment on that target."""
    remount_command: str | None = None
    """Remounts the targets once they are laid out, before the users come; None: they stay
    mounted."""


AS_IS = CacheProcedure("left as they were")
WARM = CacheProcedure(
    "every laid-out file written out and read once before each segment", TargetDir.warm
)
MACHINE_COLD = CacheProcedure(
    "the machine's page, dentry and inode caches dropped before each segment",
    TargetDir.evict_machine,
)
FILES_COLD = CacheProcedure(
    "every laid-out file synced and evicted (posix_fadvise) before each segment; dentries and "
    "inodes may be cached still, as dropping the machine's caches is not permitted here",
    TargetDir.evict,
)


def choose_procedure(state: CacheState, remount_command: str | None) -> CacheProcedure:
    """Return how the state is reached on this machine."""
    match state:
        case "as-is":
            return AS_IS
        case "warm":
            return WARM
        case "cold" if remount_command is not None:
            words = f"remounted by {remount_command!r} after laying out"
            return CacheProcedure(words, remount_command=remount_command)
        case "cold":
            return MACHINE_COLD if may_evict_machine() else FILES_COLD


def refuse_idle_remount(state: CacheState, remount_command: str | None) -> None:
    """Refuse a command that nothing would run.

    Raises:
        ReplayerError: There is one, and caches shall not become cold.
    """
    if remount_command is not None and state != "cold":
        message = f"--remount-command needs --cache cold, but the cache is {state}"
        raise ReplayerError(message, hint="add --cache cold, or leave --remount-command out")


LIMIT_S = 120.0  # chosen: NFS gives up on a dead server after about as long
KILLED_S = 5.0  # chosen: one that cannot be killed by then waits in the kernel
POLL_S = 0.02
LAST_BYTES = 4096
HINT = "the command must leave $REPLAYER_PATH mounted and exit with 0"


def remount(command: str, target_dirs: Sequence[TargetDir]) -> None:
    """Run the user's command for every mount point, with the run's folders closed meanwhile.

    Raises:
        ReplayerError: The command failed or took too long, or the user wishes an end.
    """
    for target_dir in target_dirs:
        folders = target_dir.release()
        target_dir.works.progress.close()  # the command may ask something where it was shown
        try:
            for path in target_dir.target.paths:
                _run_command(command, str(path), target_dir.works.interruption)
        except BaseException:
            with suppress(ReplayerError):  # to be removed, if it is there
                target_dir.open(folders)
            raise
        target_dir.open(folders)


def _run_command(command: str, path: str, interruption: Interruption) -> None:
    # Into a file: a pipe would be held open by whatever the command leaves behind.
    with tempfile.TemporaryFile() as said, Descendants() as started:
        process = _start(command, path, said)
        try:
            code = _wait(process, path, interruption)
        except BaseException:
            _end(process, started, path)
            raise
        if code:
            message = f"{path}: the remount command failed with {code}: {_last_line(said)}"
            raise MountError(message, hint=HINT)


def _start(command: str, path: str, said: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a command in our own group of processes: of no other one may it read the terminal."""
    return subprocess.Popen(  # noqa: S602 - the user's own command, meant for a shell
        command,
        shell=True,
        env={**os.environ, "REPLAYER_PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
    )


def _wait(process: subprocess.Popen[bytes], path: str, interruption: Interruption) -> int:
    """Wait for a command, and return its exit code.

    Raises:
        InterruptedRunError: The user wishes an end.
        MountError: It has not ended in time.
    """
    end_s = time.monotonic() + LIMIT_S
    while (code := process.poll()) is None:
        interruption.check(f"waiting for the remount command of {path}")
        if time.monotonic() > end_s:
            message = f"{path}: the remount command did not end within {LIMIT_S:g} s"
            raise MountError(message, hint=HINT)
        gevent.sleep(POLL_S)
    # A terminal's Ctrl-C is the command's, too: it may have ended of it.
    interruption.check(f"waiting for the remount command of {path}")
    return code


def _end(process: subprocess.Popen[bytes], started: Descendants, path: str) -> None:
    """Kill a command, if it goes on, and what it has started."""
    end_s = time.monotonic() + KILLED_S
    while started.kill() and time.monotonic() < end_s:
        gevent.sleep(POLL_S)
    if process.poll() is None:
        give_up_on(path)


def _last_line(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - LAST_BYTES))
    return said.read().decode(errors="replace").strip().rpartition("\n")[2]
