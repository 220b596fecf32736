"""``capture.json``: how a trace was made, kept in the trace for people and for questions later."""

import os
import platform
import time
from typing import Literal

from replayer.capture.processes import ProcessState
from replayer.capture.untraced_runs import UntracedRuns
from replayer.measure.facts import Frozen

__all__ = [
    "FORMAT_VERSION",
    "FlightState",
    "RecorderState",
    "RootState",
    "Sidecar",
    "SlowCall",
    "TimeState",
    "read_time",
]

FORMAT_VERSION = 5


class TimeState(Frozen):
    """One moment on both clocks: traces have wall times, durations are monotonic."""

    wall_ns: int
    monotonic_ns: int


class RecorderState(Frozen):
    """What recorded."""

    name: Literal["ebpf", "strace"]
    path: str
    """Of strace; empty for eBPF, which is part of this program."""
    version: str
    """Of strace, or of the kernel."""
    words: tuple[str, ...]
    """The whole command line of strace."""
    log_bytes: int
    cut_bytes: int
    """Taken off behind --limit."""


class RootState(Frozen):
    """One root, and what was below it before."""

    given: str
    absolute: str
    top: str
    """What paths in the trace begin with."""
    file_system: str
    entries: int
    excluded: int
    unreadable: int
    """What could not be listed or looked at."""
    examples: tuple[str, ...]
    changed: int = 0
    """What changed since the trace begins, so that calls tell how it was: of a flight recorder."""


class SlowCall(Frozen):
    """A call that took long, or had not returned at the end of the trace: then it is no event."""

    task: int
    name: str
    lasted_ns: int
    """Until it returned, or until then."""
    path: str | None
    """The file, or null where it is not known."""
    is_pending: bool
    """Whether it had not returned."""


class FlightState(Frozen):
    """What a flight recorder had kept."""

    reason: str
    """Why it was written."""
    asked_ns: int
    """The time of --ring."""
    kept_ns: int
    """The time that the trace covers."""
    is_short: bool
    """Whether that is less, though the recording went on for longer."""
    pending: tuple[SlowCall, ...]


class Sidecar(Frozen):
    """How a trace was made."""

    format_version: int = FORMAT_VERSION
    kind: Literal["command", "attached"]
    command: tuple[str, ...]
    """What was launched; empty where a process was attached to."""
    pid: int | None
    """The launched process, or the first of those that were attached to."""
    pids: tuple[int, ...]
    """The processes that were named to be attached to; empty where a command was launched."""
    cwd: str
    umask: str
    processes_before: tuple[ProcessState, ...]
    """What the recorded processes held open, and where they stood, before the recording."""
    roots: tuple[RootState, ...]
    exclude: tuple[str, ...]
    recorder: RecorderState
    kernel: str = platform.release()
    machine: str = platform.machine()
    user: int = os.geteuid()
    began: TimeState
    ended: TimeState
    exit_status: int | None
    """What the command ended with (128 + signal); null where a process was attached to."""
    user_ns: int | None
    """CPU time outside of the kernel; null where a process was attached to."""
    rehearsals: UntracedRuns | None
    """What the command took without the tracer; null where that was not asked for."""
    cpu: int | None
    """The one that all was recorded on; null where it was not bound to one."""
    remarks: tuple[str, ...]
    flight: FlightState | None = None
    """Of a trace that a flight recorder wrote."""


def read_time() -> TimeState:
    """Read both clocks."""
    return TimeState(
        wall_ns=time.clock_gettime_ns(time.CLOCK_REALTIME), monotonic_ns=time.monotonic_ns()
    )
