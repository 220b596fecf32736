"""The folder beside a trace in which a capture is written, until the trace stands.

It bears the trace's name, so that what a crash leaves can be found; only its owner can read it. It
never lies in a root: a program that lists the root would see it, and no replay could show it that.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.trace.errors import WRITABLE, UnmadeTraceError

__all__ = ["RESERVE_BYTES", "Staging", "free_bytes", "make_staging"]

RESERVE_BYTES = 256 << 20  # chosen: what stays free on the disk for everybody else


@dataclass(frozen=True)
class Staging:
    """Where the parts of a capture are."""

    folder: Path

    @property
    def logs(self) -> list[Path]:
        """What recorders write, each its own, of which there is one."""
        return [self.folder / "log.strace", self.probe_log]

    @property
    def probe_log(self) -> Path:
        """What the eBPF probe has recorded."""
        return self.folder / "log.bpf"

    @property
    def prelude(self) -> Path:
        """What was open before, in strace's words."""
        return self.folder / "before.strace"

    @property
    def tree(self) -> Path:
        """The manifest of the roots."""
        return self.folder / "tree.tsv.xz"

    @property
    def sidecar(self) -> Path:
        """How it was made."""
        return self.folder / "capture.json"

    @property
    def holds_recording(self) -> bool:
        """Whether a recorder has written anything that can be reached."""
        return any(map(_has_bytes, self.logs))

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder)


def _has_bytes(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def make_staging(target: Path, roots: Sequence[Path]) -> Staging:
    """Make the folder: beside the trace, or where that is in a root, beside the root.

    Args:
        target: The trace; absolute, without links or dots before its last component.
        roots: The roots, in the same form.

    Raises:
        ReplayerError: The trace exists already, or the folder that it is to be in does not.
        UnmadeTraceError: Nothing can be made beside it.
    """
    if os.path.lexists(target):
        message = f"{target}: already exists"
        raise ReplayerError(message, hint="name a new trace; existing traces are not replaced")
    try:
        beside = _make_in(target.parent, target)
    except OSError as error:
        message = f"{target.parent}: {error.strerror}"
        misnamed = isinstance(error, FileNotFoundError | NotADirectoryError)
        refusal = ReplayerError if misnamed else UnmadeTraceError
        raise refusal(message, hint=WRITABLE) from error
    root = _root_of(target, roots)
    if root is None:
        return Staging(beside)
    beside.rmdir()
    return Staging(_make_outside(target, root, roots))


def _make_outside(target: Path, root: Path, roots: Sequence[Path]) -> Path:
    for place in (root.parent, Path(tempfile.gettempdir()).resolve()):
        if _root_of(place, roots) is None:
            with suppress(OSError):
                return _make_in(place, target)
    message = f"{target}: is in the root {root}, and its parent directory is not writable"
    raise ReplayerError(message, hint="name a trace outside the roots")


def _root_of(path: Path, roots: Sequence[Path]) -> Path | None:
    return next((root for root in roots if path.is_relative_to(root)), None)


def _make_in(folder: Path, target: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f".{target.name}.capture-", dir=folder))


def free_bytes(folder: Path) -> int:
    """Return how much of a folder's disk is free for this user."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
