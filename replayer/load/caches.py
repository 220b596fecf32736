"""Bringing the client's caches into a stated state before a segment, and saying how it was done.

Cold: the user's remount command if given; else the machine's caches dropped, where that is
permitted; else every file synced and evicted. Warm: everything written out and read once. As-is:
nothing, as laying out left it.
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from replayer.errors import ReplayerError
from replayer.load.eviction import may_evict_machine
from replayer.load.ground import Ground
from replayer.load.options import CacheState
from replayer.load.targets import MountError

__all__ = ["Procedure", "choose_procedure", "refuse_idle_remount", "remount"]

REMOUNT_LIMIT_S = 120  # chosen: NFS gives up on a dead server after about as long


class Procedure(Protocol):
    """How the caches of a target are brought into their state."""

    words: str

    def prepare(self, ground: Ground) -> None:
        """Do it, before a segment on that target."""


class AsIs:
    """Leave them as they are."""

    words = "left as they were"

    def prepare(self, ground: Ground) -> None:
        """Do nothing."""


class Warm:
    """Read everything once."""

    words = "every laid-out file written out and read once before each segment"

    def prepare(self, ground: Ground) -> None:
        """Read it."""
        ground.warm()


class MachineCold:
    """Drop the whole machine's caches."""

    words = "the machine's page, dentry and inode caches dropped before each segment"

    def prepare(self, ground: Ground) -> None:
        """Sync and drop."""
        ground.evict_machine()


class FilesCold:
    """Drop the pages of every laid-out file."""

    words = (
        "every laid-out file synced and evicted (posix_fadvise) before each segment; dentries and "
        "inodes may be cached still, as dropping the machine's caches is not permitted here"
    )

    def prepare(self, ground: Ground) -> None:
        """Evict them."""
        ground.evict()


class Remounted:
    """Have been remounted before the users came."""

    def __init__(self, command: str) -> None:
        self.words = f"remounted by {command!r} after laying out"

    def prepare(self, ground: Ground) -> None:
        """Do nothing: it was done before the engine opened the folder."""


def choose_procedure(state: CacheState, remount_command: str | None) -> Procedure:
    """Return how the state is reached on this machine."""
    match state:
        case "as-is":
            return AsIs()
        case "warm":
            return Warm()
        case "cold" if remount_command is not None:
            return Remounted(remount_command)
        case "cold":
            return MachineCold() if may_evict_machine() else FilesCold()


def refuse_idle_remount(state: CacheState, remount_command: str | None) -> None:
    """Refuse a command that nothing would run.

    Raises:
        ReplayerError: There is one, and caches shall not become cold.
    """
    if remount_command is not None and state != "cold":
        message = f"--remount-command is for cold caches, and here they are {state}"
        raise ReplayerError(message, hint="add --cache cold, or leave --remount-command out")


def remount(command: str, grounds: Sequence[Ground]) -> None:
    """Run the user's command for every mount point, with the run's folders closed meanwhile.

    Raises:
        MountError: The command failed.
    """
    for ground in grounds:
        folders = ground.release()
        try:
            for path in ground.target.paths:
                _run_command(command, str(path))
        except MountError:
            with suppress(ReplayerError):  # to be removed, if it is there
                ground.open(folders)
            raise
        ground.open(folders)


def _run_command(command: str, path: str) -> None:
    environment = {**os.environ, "REPLAYER_PATH": path}
    hint = "it must leave $REPLAYER_PATH mounted, and exit with 0"
    try:
        done = _in_shell(command, environment)
    except subprocess.TimeoutExpired as error:
        message = f"{path}: the remount command has not ended within {REMOUNT_LIMIT_S} s"
        raise MountError(message, hint=hint) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        message = f"{path}: the remount command failed with {done.returncode}: {last}"
        raise MountError(message, hint=hint)


def _in_shell(command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S602 - the user's own command, meant for a shell
        command,
        shell=True,
        env=environment,
        capture_output=True,
        text=True,
        timeout=REMOUNT_LIMIT_S,
        check=False,
    )
