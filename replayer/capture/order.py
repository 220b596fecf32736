"""What a capture is asked to do: plain values, checked by the rooms that use them."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

__all__ = ["Attach", "CaptureOrder", "RawLog", "RecordedCommand", "RecorderChoice", "Verbosity"]

LIMIT_BYTES = 20 * 10**9  # chosen: about 150 million calls, and a tenth of a usual disk


class Verbosity(Enum):
    """How much is told while it runs."""

    PROGRESS = "progress"
    QUIET = "quiet"


class RecorderChoice(Enum):
    """What records."""

    AUTO = "auto"
    EBPF = "ebpf"
    STRACE = "strace"


class RawLog(Enum):
    """What becomes of the recorder's own log."""

    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True)
class RecordedCommand:
    """Record a command from its beginning.

    Attributes:
        command: Its words.
        rehearsals: So often it is run without the tracer first.
        preparation: What a shell runs before each of these, and before the recording.
    """

    command: tuple[str, ...]
    rehearsals: int = 0
    preparation: str | None = None


@dataclass(frozen=True)
class Attach:
    """Record running processes, their threads, their children and all that they start."""

    pids: tuple[int, ...]


@dataclass(frozen=True)
class CaptureOrder:
    """One capture.

    Attributes:
        target: The trace to make; it must not exist.
        roots: Directories as they were given.
        what: What to record.
        exclude: Globs of what to leave out of the list of the tree.
        raw: Whether the recorder's log stays in the trace.
        limit_bytes: What the log may take on the disk.
        verbosity: Whether a terminal shows progress.
        note: What the recording is of; the command line or process where nothing is said.
        recorder: What records.
    """

    target: Path
    roots: tuple[Path, ...]
    what: RecordedCommand | Attach
    exclude: tuple[str, ...] = ()
    raw: RawLog = RawLog.DROP
    limit_bytes: int = LIMIT_BYTES
    verbosity: Verbosity = Verbosity.PROGRESS
    note: str = ""
    recorder: RecorderChoice = RecorderChoice.STRACE
