"""Whether a run's folder is still where it was made: others may delete or rename it under a run."""

import errno
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from replayer._native import Sandbox
from replayer.run.marker import MARKER

__all__ = ["Identity", "Loss", "find_loss", "identify"]

GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})

Identity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True)
class Loss:
    """What became of a folder, or of its marker.

    Attributes:
        says: In a sentence.
        remedy: What that leaves to be done, in a line.
    """

    says: str
    remedy: str


def identify(path: str) -> Identity:
    """Return what tells a folder from another one of its name.

    Raises:
        OSError: It cannot be looked at.
    """
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def find_loss(target: str, folder: Sandbox, made: Identity) -> Loss | None:
    """Look for a folder by its name; None: it is there, with its marker.

    Args:
        target: Its name, for a person.
        folder: As it was opened.
        made: What it was then.

    Raises:
        OSError: The mount does not answer.
    """
    path = folder.path
    try:
        # The marker first: some file systems give a file another inode number after a while.
        if _note_in(path) == folder.note:
            return None
        is_marked = False
    except OSError as error:
        if error.errno not in GONE:
            raise
        is_marked = True  # for all that is known
    if _is_same(path, made):
        return None if is_marked else _unmarked(target, path)
    place = _place_of(path, made)
    if place is None:
        return _unmounted(target, path)
    return _gone(target, path) if place == Path(path).parent else _moved(target, path)


def _is_same(path: str, made: Identity) -> bool:
    try:
        return identify(path) == made
    except OSError as error:
        if error.errno not in GONE:
            raise
        return False


def _note_in(path: str) -> str | None:
    try:
        return Sandbox.open(path).note
    except ValueError:  # no marker
        return None


def _place_of(path: str, made: Identity) -> Path | None:
    """Return the nearest folder above that is still there; None: it is on another device."""
    for folder in Path(path).parents:
        try:
            return folder if folder.stat().st_dev == made[0] else None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # a mount without its server
            return None
    return None


def _unmounted(target: str, path: str) -> Loss:
    return Loss(
        f"the mount of {target} is gone: {path} was on it",
        f"left behind (its mount is gone): when it is mounted again, remove it with: "
        f"replayer clean {shlex.quote(path)}",
    )


def _moved(target: str, path: str) -> Loss:
    return Loss(
        f"the target {target} was renamed or removed: {path} is not there any more",
        f"nothing was removed: {path} is gone (if its target was renamed: replayer clean NEW-NAME)",
    )


def _gone(target: str, path: str) -> Loss:
    return Loss(
        f"the run's folder is gone from {target}: {path} was deleted, renamed or replaced",
        f"nothing was removed: {path} is gone (if it was renamed: replayer clean NEW-NAME)",
    )


def _unmarked(target: str, path: str) -> Loss:
    return Loss(
        f"the marker of the run's folder is gone from {target}: {path}/{MARKER} was deleted or "
        "changed",
        f"left behind (without its marker it is not removed): if it is only the run's, remove it "
        f"with: rm -r {shlex.quote(path)}",
    )
