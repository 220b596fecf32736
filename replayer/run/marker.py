"""The marker of a run's folder: its owner, how a kept folder passes on, and how it may get lost.

A folder without a marker is never used or removed. The marker is replaced as a whole: a reader sees
the old note or the new one.
"""

import errno
import fcntl
import json
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from replayer._native import Sandbox
from replayer.errors import ReplayerError
from replayer.measure.facts import collect_machine
from replayer.measure.run import (
    Process,
    describe_owner,
    is_alive,
    is_elsewhere,
    this_process,
    utc_text,
)

MARKER = ".replayer-run"
_MODE = 0o600  # as the engine makes it


@dataclass(frozen=True)
class Owner:
    """The run that a folder is of."""

    process: Process
    elsewhere: str = ""
    """Where that is, if it cannot be seen from here whether it goes on; else empty."""

    @property
    def is_another(self) -> bool:
        """Whether it goes on here, in a process that is not this one."""
        return not self.elsewhere and self.process != this_process() and is_alive(self.process)


def marker_note(run: str, plan_fingerprint: str, source: str) -> str:
    """Return what the marker file of a run's folder says: whose it is, and how to find it alive."""
    return json.dumps(
        {
            "run": run,
            "scenario": source,
            "fingerprint": plan_fingerprint,
            "began": utc_text(),
            **describe_owner(),
        }
    )


def owner_in(note: str) -> Owner | None:
    """Return the run that a note names; None: it has ended, or was killed while it wrote."""
    try:
        told = json.loads(note)
        if "ended" in told:
            return None
        process = Process.model_validate(
            {**told["process"], "pid_namespace": told.get("pid_namespace")}  # older ones have none
        )
        return Owner(process, _elsewhere(process, told["host"]))
    except (ValueError, KeyError, TypeError, ValidationError):
        return None


def take_over(path: str, note: str) -> None:
    """Make a kept folder that of this run.

    Raises:
        ReplayerError: Another run is at work there, or may be.
        ValueError: It has no marker.
        OSError: The mount refuses.
    """
    folder = _open(path)
    try:
        # Of two runs of this machine one is first; some mounts know no locks on folders.
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        _refuse_owned(path, owner_in(Sandbox.open(path).note))
        _replace(folder, note)
    finally:
        os.close(folder)


def hand_on(path: str, note: str) -> None:
    """Say in the marker of a folder that is kept that its run has ended.

    Raises:
        OSError: The mount refuses.
    """
    folder = _open(path)
    try:
        _replace(folder, json.dumps({**json.loads(note), "ended": utc_text()}))
    finally:
        os.close(folder)


def _elsewhere(process: Process, host: str) -> str:
    if host != collect_machine().host:
        return "on another machine"
    return "in another PID namespace (a container?)" if is_elsewhere(process) else ""


def _refuse_owned(path: str, owner: Owner | None) -> None:
    if owner is None:
        return
    hint = "wait until it ends, or run without --reuse"
    if owner.elsewhere:
        message = f"{path}: its last run was started {owner.elsewhere} and may still be running"
        if_gone = (
            f"if it was killed, remove the folder with: replayer clean --force {shlex.quote(path)}"
        )
        raise ReplayerError(message, hint=f"{hint}; {if_gone}")
    if owner.is_another:
        message = f"{path}: another run is using it (process {owner.process.pid})"
        raise ReplayerError(message, hint=hint)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _replace(folder: int, note: str) -> None:
    beside = f"{MARKER}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, _MODE, dir_fd=folder), "wb") as file:
            file.write(note.encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, MARKER, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):  # what is not the plan's would keep others from using the folder
            os.unlink(beside, dir_fd=folder)
        raise


GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})

Identity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True)
class Loss:
    """What became of a folder, or of its marker."""

    says: str
    """In a sentence."""
    remedy: str
    """What that leaves to be done, in a line."""


def identify(path: str) -> Identity:
    """Return what tells a folder from another one of its name.

    Raises:
        OSError: It cannot be looked at.
    """
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def find_loss(target: str, folder: Sandbox, made: Identity) -> Loss | None:
    """Look for a folder by its name; None: it is there, with its marker.

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
        f"the mount of {target} is gone, and {path} with it",
        "left behind (its mount is gone); mount it again, then remove it with: replayer clean "
        f"{shlex.quote(path)}",
    )


def _moved(target: str, path: str) -> Loss:
    return Loss(
        f"the target {target} was renamed or removed: {path} no longer exists",
        f"nothing was removed: {path} is gone (if its target was renamed: replayer clean NEW-NAME)",
    )


def _gone(target: str, path: str) -> Loss:
    return Loss(
        f"the run's folder on {target} is gone: {path} was deleted, renamed or replaced",
        f"nothing was removed: {path} is gone (if it was renamed: replayer clean NEW-NAME)",
    )


def _unmarked(target: str, path: str) -> Loss:
    return Loss(
        f"the marker of the run's folder on {target} is gone: {path}/{MARKER} was deleted or "
        "changed",
        "left behind (without its marker it is not removed); if only the run used it, remove it "
        f"with: rm -r {shlex.quote(path)}",
    )
