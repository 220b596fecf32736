"""Bringing the client's caches into a stated state before a segment, and saying how it was done.

Cold: the user's remount command if given; else the machine's caches dropped, where that is
permitted; else every file synced and evicted. Warm: everything written out and read once. As-is:
nothing, as laying out left it.
"""

from typing import Protocol

from replayer.errors import ReplayerError
from replayer.run.eviction import may_evict_machine
from replayer.run.options import CacheState
from replayer.run.target_dir import TargetDir

__all__ = ["CacheProcedure", "choose_procedure", "refuse_idle_remount"]


class CacheProcedure(Protocol):
    """How the caches of a target are brought into their state."""

    words: str

    def prepare(self, target_dir: TargetDir) -> None:
        """Do it, before a segment on that target."""


class AsIs:
    """Leave them as they are."""

    words = "left as they were"

    def prepare(self, target_dir: TargetDir) -> None:
        """Do nothing."""


class Warm:
    """Read everything once."""

    words = "every laid-out file written out and read once before each segment"

    def prepare(self, target_dir: TargetDir) -> None:
        """Read it."""
        target_dir.warm()


class MachineCold:
    """Drop the whole machine's caches."""

    words = "the machine's page, dentry and inode caches dropped before each segment"

    def prepare(self, target_dir: TargetDir) -> None:
        """Sync and drop."""
        target_dir.evict_machine()


class FilesCold:
    """Drop the pages of every laid-out file."""

    words = (
        "every laid-out file synced and evicted (posix_fadvise) before each segment; dentries and "
        "inodes may be cached still, as dropping the machine's caches is not permitted here"
    )

    def prepare(self, target_dir: TargetDir) -> None:
        """Evict them."""
        target_dir.evict()


class Remounted:
    """Have been remounted before the users came."""

    def __init__(self, command: str) -> None:
        self.words = f"remounted by {command!r} after laying out"

    def prepare(self, target_dir: TargetDir) -> None:
        """Do nothing: it was done before the engine opened the folder."""


def choose_procedure(state: CacheState, remount_command: str | None) -> CacheProcedure:
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
