"""What a capture is asked to do: plain values, checked by the rooms that use them."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

__all__ = [
    "Attach",
    "CallLimit",
    "CaptureOrder",
    "FlightOrder",
    "RawLog",
    "RecordedCommand",
    "RecorderChoice",
    "Verbosity",
]

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
class CallLimit:
    """How long calls may take before a trace is written.

    Attributes:
        call: The word for them, or ``any``.
        limit_ns: The time.
    """

    call: str
    limit_ns: int


@dataclass(frozen=True)
class FlightOrder:
    """Keep the latest calls in memory until somebody asks for a trace.

    Attributes:
        least_ns: How much time is kept, if its calls have room.
        limit_bytes: The memory that they may take.
        when: When a trace is written without anybody asking.
    """

    least_ns: int
    limit_bytes: int
    when: CallLimit | None = None


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
        flight: What is kept, where the recording goes on until somebody ends it.
    """

    target: Path
    roots: tuple[Path, ...]
    what: RecordedCommand | Attach
    exclude: tuple[str, ...] = ()
    raw: RawLog = RawLog.DROP
    limit_bytes: int = LIMIT_BYTES
    verbosity: Verbosity = Verbosity.PROGRESS
    note: str = ""
    recorder: RecorderChoice = RecorderChoice.AUTO
    flight: FlightOrder | None = None
