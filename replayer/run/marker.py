"""The marker of a run's folder: whose it is, and how a kept folder passes from run to run.

A folder without one is nobody's to use or to remove. It is replaced as a whole: a reader sees the
old note or the new one.
"""

import fcntl
import json
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from replayer._native import Sandbox
from replayer.errors import ReplayerError
from replayer.measure.clock import utc_text
from replayer.measure.facts import collect_machine
from replayer.measure.run import (
    Process,
    describe_owner,
    is_alive,
    is_elsewhere,
    this_process,
)

__all__ = ["MARKER", "Owner", "hand_on", "marker_note", "owner_in", "take_over"]

MARKER = ".replayer-run"
_MODE = 0o600  # as the engine makes it


@dataclass(frozen=True)
class Owner:
    """The run that a folder is of.

    Attributes:
        process: Which process runs it.
        elsewhere: Where that is, if it cannot be seen from here whether it goes on; else empty.
    """

    process: Process
    elsewhere: str = ""

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
    hint = "let it end first, or run without --reuse in a folder of its own"
    if owner.elsewhere:
        message = f"{path}: its last run was started {owner.elsewhere}, and may go on there"
        if_gone = f"if it was killed: replayer clean --force {shlex.quote(path)}"
        raise ReplayerError(message, hint=f"{hint}; {if_gone}")
    if owner.is_another:
        message = f"{path}: another run is at work there (process {owner.process.pid})"
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
