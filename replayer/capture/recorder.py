"""What records: the one interface of both recorders, and what comes of a recording.

A recorder writes one log, which the importer of its format reads. What is asked of it, in this
order: whether it works here, what it costs, and then one recording.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from replayer.capture.calibration import Calibration
from replayer.capture.ending import BoundedLog
from replayer.capture.processes import ProcessState
from replayer.capture.progress import Progress
from replayer.capture.signals import Inbox

__all__ = ["Recorded", "Recorder", "RecorderLog"]


class RecorderLog(BoundedLog, Protocol):
    """The file that a recorder writes."""

    def cut(self) -> int:
        """Take off what lies behind the limit; return how many bytes went."""

    def count_calls(self) -> tuple[int, int] | None:
        """Return how many calls there are, and of how many tasks; None if nobody needs it."""


@dataclass(frozen=True)
class Recorded:
    """What came of a recording."""

    status: int
    """The exit status to pass on."""
    first_process: int | None
    """The recorded process; None if nothing was recorded."""
    user_ns: int | None
    """CPU time that the command and all it waited for used outside of the kernel, in steps of
    10 ms; None where a process was attached to, or where nobody needs it."""
    remarks: tuple[str, ...]
    """What the user must know about the recording, a sentence each."""
    is_left: bool = False
    """Whether the command had not ended: its exit status is not known."""
    words: tuple[str, ...] = ()
    """The command line that recorded; empty if none did."""
    states: tuple[ProcessState, ...] = ()
    """The processes that were attached to, as they were when that began."""
    tells_open_files: bool = False
    """Whether the log itself tells what these had open."""


class Recorder(Protocol):
    """Records commands and processes."""

    @property
    def name(self) -> Literal["ebpf", "strace"]:
        """As ``--recorder`` has it."""

    @property
    def path(self) -> str:
        """Its program; empty if it is part of this one."""

    @property
    def version(self) -> str:
        """Of the program, or of the kernel that does its work."""

    @property
    def log_format(self) -> Literal["bpf", "strace"]:
        """The importer of its log."""

    @property
    def log(self) -> RecorderLog:
        """What it writes."""

    def check(self) -> None:
        """Make sure that it works here, before anything depends on it.

        Raises:
            TracerError: It does not.
        """

    def calibrate(self, what: Literal["command", "attached"]) -> Calibration | None:
        """Measure what it costs; None where the machine does not let itself be measured."""

    def record_command(self, command: Sequence[str], inbox: Inbox, progress: Progress) -> Recorded:
        """Run a command, to the end of all that it starts."""

    def record_attached(self, pids: Sequence[int], inbox: Inbox, progress: Progress) -> Recorded:
        """Record running processes, until they end or somebody ends it."""
