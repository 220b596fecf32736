"""The folder beside a trace in which a capture is written, until the trace stands.

It bears the trace's name, so that what a crash leaves can be found; only its owner can read it.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from replayer.errors import ReplayerError

__all__ = ["Staging", "make_staging"]


@dataclass(frozen=True)
class Staging:
    """Where the parts of a capture are."""

    folder: Path

    @property
    def log(self) -> Path:
        """What strace writes."""
        return self.folder / "log.strace"

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
    def errors(self) -> Path:
        """What strace said when it attached."""
        return self.folder / "strace.err"

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder)


def make_staging(target: Path) -> Staging:
    """Make the folder.

    Raises:
        ReplayerError: The trace exists already, or nothing can be made beside it.
    """
    if os.path.lexists(target):
        message = f"{target}: exists already"
        raise ReplayerError(message, hint="name a trace that does not exist yet; none is replaced")
    try:
        prefix = f".{target.name}.capture-"
        return Staging(Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent)))
    except OSError as error:
        message = f"{target.parent}: {error.strerror}"
        raise ReplayerError(message, hint="name a trace in a folder that you can write") from error
