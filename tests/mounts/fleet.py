"""The mounts of this machine, brought up once for all tests; those that cannot be say why."""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mounts.gluster import gluster
from tests.mounts.local import btrfs, ext4, tmpfs, xfs
from tests.mounts.machine import CannotError
from tests.mounts.pieces import Piece
from tests.mounts.play import Played, play
from tests.mounts.sshfs import sshfs
from tests.mounts.zfs import zfs

__all__ = ["ALL", "CHOSEN", "Fleet", "launch", "long", "with_fio"]

BringUp = Callable[[ExitStack, Path], tuple[Path, ...]]

MAKERS: Mapping[str, BringUp] = {
    "tmpfs": tmpfs,
    "ext4": ext4,
    "sshfs": sshfs,
    "xfs": xfs,
    "btrfs": btrfs,
    "gluster": gluster,
    "zfs-fuse": zfs,
}
ALL = tuple(MAKERS)
QUICK = ALL[:3]
WANTED = os.environ.get("REPLAYER_MOUNTS", ",".join(QUICK))


def _chosen() -> tuple[str, ...]:
    names = ALL if WANTED == "all" else tuple(WANTED.split(","))
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        known = ", ".join(ALL)
        raise pytest.UsageError(f"REPLAYER_MOUNTS: {unknown[0]!r} is none of {known}; or all")
    return names


CHOSEN = _chosen()
"""The mounts that were asked for."""
long = pytest.mark.skipif(WANTED != "all", reason="long: just mounts all")
"""Tests that a run of everything leaves out: together they take minutes."""
with_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


@dataclass
class Fleet:
    """What came up.

    Attributes:
        mounts: The mount points of each.
        missing: Why the others did not come up.
    """

    home: Path
    mounts: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    _played: dict[str, Played] = field(default_factory=dict)

    def played(self, piece: Piece) -> Played:
        """Play a piece on all of them, once."""
        if piece.name not in self._played:
            self._played[piece.name] = play(piece, self.mounts, self.home / "runs")
        return self._played[piece.name]


def launch(stack: ExitStack, home: Path) -> Fleet:
    """Bring up every mount that was asked for."""
    fleet = Fleet(home)
    for name in CHOSEN:
        own = stack.enter_context(ExitStack())
        try:
            fleet.mounts[name] = MAKERS[name](own, home / name)
        except CannotError as error:
            own.close()
            fleet.missing[name] = str(error)
    return fleet
