"""Recording with eBPF: a probe in the kernel tells of calls, and no program is stopped.

The probe is attached for the time of the recording. It goes when this process ends, however that
happens; the recorded programs do not notice. A call that the kernel could not tell of is counted,
and the trace ends before it.
"""

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, Protocol, TypedDict

from replayer import _native
from replayer.capture.calibration import Calibration, measure_probe
from replayer.capture.ending import CommandEnder, Watch, status_of, wait_for_end
from replayer.capture.processes import ProcessState, families_of, has_ended, is_running, read_state
from replayer.capture.progress import Progress, say
from replayer.capture.recorder import Recorded
from replayer.capture.refusal import LostLogError, TracerError
from replayer.capture.signals import Inbox, Notice
from replayer.capture.staging import RESERVE_BYTES, free_bytes

__all__ = ["RING_BYTES", "EbpfRecorder", "attach_families", "close_probes", "refusal_of"]

RING_BYTES = 16 << 20  # chosen: 350 ms of 400,000 calls a second
MOST_LOOKS = 10  # chosen: a program that starts others all the time is never seen whole at once
LOCKDOWN = Path("/sys/kernel/security/lockdown")
_NOWHERE = "/dev/null"
_ENOUGH = 1 << 40


class Attaching(Protocol):
    """A recording of processes that run."""

    def attach_to(self, processes: Sequence[int], /) -> None:
        """Record them, and all that descends from them."""


def refusal_of(error: RuntimeError) -> TracerError:
    """Return the refusal that tells why the probe cannot be used, and what it needs."""
    reason, need = error.args
    if "not permitted" in str(reason) and "[confidentiality]" in _lockdown():
        need = f"a kernel that is not locked down: {LOCKDOWN} is 'confidentiality'"
    return TracerError(str(reason), hint=f"needed: {need}")


def _lockdown() -> str:
    try:
        return LOCKDOWN.read_text()
    except OSError:  # a kernel without, or a container that does not show it
        return ""


def close_probes() -> None:
    """Close all that this process holds of eBPF: the kernel detaches and removes it at once."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("anon_inode:bpf"):  # noqa: PTH115
                os.close(int(name))


def attach_families(recording: Attaching, pids: Sequence[int]) -> None:
    """Have processes and their descendants recorded, those too that start meanwhile."""
    family: list[int] = []
    for _ in range(MOST_LOOKS):
        missed = [pid for pid in families_of(pids) if pid not in family]
        if not missed:
            break
        recording.attach_to(missed)
        family += missed


def _unseen(family: Sequence[int], states: Sequence[ProcessState]) -> list[str]:
    """Return what must be said of processes that this user may record and not look into."""
    seen = {state.process for state in states}
    unseen = [pid for pid in family if pid not in seen and is_running(pid)]
    if not unseen:
        return []
    numbers = ", ".join(map(str, unseen[:8]))
    why = f"process {numbers}: the working directory is not readable (needed: CAP_SYS_PTRACE)"
    return [f"{why}; calls by relative names may be missing"]


class _RecordingState(TypedDict):
    """How far a recording is (``_native.ProbeRecording.progress``)."""

    records: int
    bytes: int
    lost: int
    live: int
    is_full: bool
    trouble: str | None


class ProbeLog:
    """What the probe tells, in a file that another thread writes.

    Attributes:
        path: Where it is.
        limit_bytes: What of it is kept.
        trouble: Why it cannot be written.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.trouble: str | None = None
        self._recording: _native.ProbeRecording | None = None
        self._has_stopped = False
        self._is_short_of_room = False

    def follow(self, recording: _native.ProbeRecording) -> None:
        """Look after the recording that writes it."""
        self._recording = recording

    def _progress(self) -> _RecordingState | None:
        if self._recording is None:
            return None
        told: _RecordingState = json.loads(self._recording.progress())
        return told

    @property
    def size_bytes(self) -> int:
        """What has been written so far."""
        with suppress(FileNotFoundError):
            return self.path.stat().st_size
        return 0

    @property
    def is_full(self) -> bool:
        """Whether no more of it is kept."""
        if self.trouble is not None or self._is_short_of_room:
            return True
        progress = self._progress()
        return progress is not None and progress["is_full"]

    @property
    def reason(self) -> str:
        """Why it is full, in words to follow its name."""
        if self.trouble is not None:
            return f"can no longer be written ({self.trouble})"
        if self._is_short_of_room:
            return f"leaves less than {RESERVE_BYTES:,} bytes of the disk free"
        return f"has reached {self.limit_bytes:,} bytes"

    def estimate_events(self) -> int:
        """Return how many calls were recorded."""
        progress = self._progress()
        return 0 if progress is None else progress["records"]

    def bound(self) -> None:
        """Stop the recording where its file has no more room."""
        progress = self._progress()
        if progress is None or self._has_stopped:
            return
        self.trouble = progress["trouble"]
        try:
            self.path.stat()  # somebody may have removed it
            self._is_short_of_room = free_bytes(self.path.parent) < RESERVE_BYTES
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
        if self.is_full:
            self.stop()

    def stop(self) -> None:
        """Detach the probe and end the file."""
        self._has_stopped = True
        if self._recording is not None:
            self._recording.finish()

    def live(self) -> int:
        """Return how many threads are recorded."""
        progress = self._progress()
        return 0 if progress is None or self._has_stopped else progress["live"]

    def processes(self) -> list[int]:
        """Return the processes that are recorded and live."""
        known = [] if self._recording is None else self._recording.processes()
        return [pid for pid in known if is_running(pid)]

    def cut(self) -> int:
        """Return 0: nothing is written behind the limit."""
        return 0

    def count_calls(self) -> None:
        """Count nothing: pauses are as they were recorded."""


class _Launched:
    """The recorded command, and what it started."""

    def __init__(self, pid: int, log: ProbeLog) -> None:
        self._pid = pid
        self._log = log

    def command(self) -> int:
        """Return the command."""
        return self._pid

    def members(self) -> list[int]:
        """Return those that live."""
        return self._log.processes()


class _Detacher:
    """Lets go of the processes: they do not notice."""

    waits_for_others = False

    def __init__(self, log: ProbeLog) -> None:
        self._log = log
        self._has_ended = False

    def receive(self, _: Notice) -> None:
        """End the recording."""
        self._has_ended = True

    def tick(self) -> bool:
        """Go on until somebody ends it, or its log is full."""
        if self._log.is_full and not self._has_ended:
            say(f"the log {self._log.reason}: detaching")
            self._has_ended = True
        return not self._has_ended


class EbpfRecorder:
    """Records with the probe in the kernel."""

    name: Literal["ebpf"] = "ebpf"
    log_format: Literal["bpf"] = "bpf"
    path = ""
    version = platform.release()

    def __init__(
        self,
        folder: Path,
        limit_bytes: int,
        ring_bytes: int = RING_BYTES,
        *,
        roots: Sequence[Path] = (),
    ) -> None:
        self._ring_bytes = ring_bytes
        self._roots = roots
        self._probe: _native.ProbeRecording | None = None
        self.log = ProbeLog(folder / "log.bpf", limit_bytes)

    def check(self) -> None:
        """Load and attach the probe for a moment.

        Raises:
            TracerError: It cannot be used: why, and what would be needed.
        """
        self._begin(_NOWHERE, _ENOUGH).finish()

    def _begin(self, path: str | Path, limit_bytes: int) -> _native.ProbeRecording:
        """Begin a recording; the probe is loaded once, and attached for each."""
        try:
            if self._probe is None:
                self._probe = _native.ProbeRecording(path, self._ring_bytes, limit_bytes)
            else:
                self._probe.restart(path, limit_bytes)
        except RuntimeError as error:
            raise refusal_of(error) from None
        return self._probe

    def _begin_log(self) -> _native.ProbeRecording:
        recording = self._begin(self.log.path, self.log.limit_bytes)
        recording.record_pages([root.stat().st_ino for root in self._roots])
        self.log.follow(recording)
        return recording

    def calibrate(self, _: Literal["command", "attached"]) -> Calibration | None:
        """Measure what it adds between two calls."""
        log = self.log.path.with_name("calibration.bpf")
        return measure_probe(self._record_aside(log), log)

    @contextmanager
    def _record_aside(self, log: Path) -> Iterator[Callable[[], None]]:
        recording = self._begin(log, _ENOUGH)
        try:
            yield recording.arm
        finally:
            recording.finish()

    def record_command(self, command: Sequence[str], inbox: Inbox, progress: Progress) -> Recorded:
        """Run a command, to the end of all that it starts.

        Raises:
            LostLogError: What was recorded could not be written.
        """
        recording = self._begin_log()
        remarks: list[str] = []
        recording.arm()
        child = inbox.spawn(command)
        ender = CommandEnder(_Launched(child, self.log), self.log, remarks)
        watch = Watch(self.log, inbox, progress)
        wait_for_end(lambda: has_ended(child) and not self.log.live(), watch, ender)
        ended, told = os.waitpid(child, os.WNOHANG)
        status = status_of(os.waitstatus_to_exitcode(told) if ended else None)
        self._finish(status, remarks)
        return Recorded(
            status,
            child,
            user_ns=None,
            remarks=tuple(remarks),
            is_left=not ended,
        )

    def record_attached(self, pids: Sequence[int], inbox: Inbox, progress: Progress) -> Recorded:
        """Record running processes and their descendants, until they end or somebody ends it."""
        family = families_of(pids)
        states = read_state(family)
        remarks = _unseen(family, states)
        attach_families(self._begin_log(), pids)
        watch = Watch(self.log, inbox, progress)
        wait_for_end(lambda: not self.log.live(), watch, _Detacher(self.log))
        self._finish(None, remarks)
        return Recorded(
            status=0,
            first_process=pids[0],
            user_ns=None,
            remarks=tuple(remarks),
            states=states,
            tells_open_files=True,
        )

    def _finish(self, status: int | None, remarks: list[str]) -> None:
        self.log.bound()
        is_full, reason = self.log.is_full, self.log.reason
        self.log.stop()
        if self.log.trouble is not None:
            if status is not None:
                say(f"the command ended with exit status {status}")
            raise LostLogError(self.log.path, reason)
        if is_full:
            remarks.append(f"the log {reason}: later calls were not recorded")
