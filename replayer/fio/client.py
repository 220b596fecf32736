"""fio as a client of the run loop: a segment is one job file, run once on one target.

Results go to the recorder as they come. A segment ends in bounded time: fio is asked to stop when
it is overdue or when the user wishes it, then killed, then left behind.
"""

import errno
import math
import os
import re
import shutil
import signal
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import gevent

from replayer.errors import OutsideError
from replayer.fio.amounts import bytes_needed, processes, processes_at_once, seconds_needed
from replayer.fio.job_health import JobHealth
from replayer.fio.jobfile import JobFile, Section
from replayer.fio.places import NO_ROOM, DevicePlace, JobPlace
from replayer.fio.process import FioProcess, Launch
from replayer.fio.program import Program
from replayer.fio.recorder import FioRecorder, Gain
from replayer.fio.snapshot import Snapshot, parse_snapshot
from replayer.fio.writing import render_job_file
from replayer.measure.health import RunWarning
from replayer.measure.hlog import Segment
from replayer.measure.runfolder import RunFolder, writing_to
from replayer.run.controller import POLL_S, LoadClient
from replayer.run.interruption import Interruption, Level
from replayer.run.ledger import Ledger
from replayer.run.progress import ProgressDisplay, Tick
from replayer.run.schedule import ScheduledSegment
from replayer.run.watchdog import Watchdog, ask

KILL_S = 5.0  # chosen: a process that is not gone by then hangs in the kernel
SLOWEST_BYTES_PER_S = 1_000_000  # chosen: a fifth of EFS without burst credits (5 MiB/s)
LATE_S = 120.0  # chosen: beside the run time, for the last fsync on a slow mount
SILENT_S = 600.0  # chosen: a job without a run time that ends no I/O for so long hangs

_SIGNALLED = re.compile(r"fio: pid=\d+, got signal=(?P<signal>\d+)")
"""As reap_threads() of fio's backend.c puts it."""
_QUIET = re.compile(r"fio: terminating on signal|fio: pid=|^Starting |^Jobs: |^Laying out |^note: ")

_FAILED = re.compile(r"io_u error on file (?P<path>.+?): (?P<outcome>.+?): (?P<op>[a-z]+) offset=")
"""As log_io_error() of fio's io_u.c puts it."""
_ERRORS = {os.strerror(number): name for number, name in errno.errorcode.items()}

_LOG = re.compile(r".+_(bw|lat|clat|slat|iops|clat_hist)(\.\d+)?\.log")
"""How fio names logs, see fio(1), write_bw_log."""
MOST_LOGS = 1000  # chosen: three of each process of a large job


@dataclass(frozen=True)
class JobSegment(ScheduledSegment):
    """One turn of a job file on one target."""

    file: JobFile = field(kw_only=True)


def schedule_jobs(files: Sequence[JobFile], targets: int, rounds: int) -> tuple[JobSegment, ...]:
    """Return each job file's turn on every target in every round."""
    return tuple(
        JobSegment(target, turn, None, ", ".join(each.name for each in file.sections), file=file)
        for turn in range(rounds)
        for file in files
        for target in range(targets)
    )


class FioDeadline:
    """Decides when one fio has taken too long."""

    def __init__(self, file: JobFile, seconds: float | None) -> None:
        self._begin = self._moved = time.monotonic()
        self._seconds = seconds
        # Until its jobs begin fio lays their files out; in a ramp_time no I/O tells that they have.
        working_s = SILENT_S if seconds is None else seconds
        self._layout_s = bytes_needed(file) / SLOWEST_BYTES_PER_S + working_s + LATE_S
        self._tells_late = any(_tells_late(section) for section in file.sections)
        self._started: float | None = None

    @property
    def lays_out(self) -> bool:
        """Whether files are being laid out."""
        return self._started is None

    def begin(self) -> bool:
        """Note that the jobs seem to have begun; return False if only their first I/O tells it."""
        if self._started is None and not self._tells_late:
            self._started = time.monotonic()
        return not self.lays_out

    def note(self, gains: list[Gain]) -> None:
        """Something came from fio."""
        if any(gain.histogram.count for gain in gains):
            self._moved = time.monotonic()
            self._started = self._started or self._moved

    @property
    def left_s(self) -> float | None:
        """Return how long it should still take."""
        if self._seconds is None or self._started is None:
            return self._seconds
        return self._started + self._seconds - time.monotonic()

    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        """Return for how long no I/O has ended, if that is longer than a limit."""
        now = time.monotonic()
        silent_ns = int((now - max(self._moved, self._started or now)) * 1e9)
        return [("fio:", "no I/O has completed", silent_ns)] if silent_ns > after_ns else []

    def is_over(self) -> bool:
        """Whether it has taken too long."""
        now = time.monotonic()
        if self._started is None:
            return now - self._begin > self._layout_s
        if self._seconds is not None:
            return now - self._started > self._seconds + LATE_S
        return now - max(self._moved, self._started) > SILENT_S


@dataclass
class _ActiveFio:
    """A fio that runs."""

    segment: ScheduledSegment
    file: JobFile
    process: FioProcess
    folder: Path
    last: str | None = None
    is_broken: bool = False
    """Whether what it prints can be neither read nor kept."""
    overdue: bool = False
    killed: int = 0

    def __post_init__(self) -> None:
        self.deadline = FioDeadline(self.file, seconds_needed(self.file))
        self.watchdog = Watchdog(math.inf, math.inf)
        self.processes = {section.name: processes(section) for section in self.file.sections}

    def parse(self, text: str) -> Snapshot:
        """Parse what fio printed.

        Raises:
            OutsideError: It cannot be read.
        """
        try:
            return parse_snapshot(text)
        except ValueError as error:
            message = f"{self.file.source}: fio printed invalid results: {error}"
            hint = "check that fio in PATH is the real fio; results so far are kept"
            raise OutsideError(message, hint=hint) from error

    def end(self) -> bool:
        """Kill fio unless it has ended; return whether it is gone."""
        if self.process.ended() is not None:
            return True
        self.killed = self.process.kill()
        deadline_s = time.monotonic() + KILL_S
        while self.process.ended() is None and time.monotonic() < deadline_s:
            gevent.sleep(POLL_S)
        return self.process.ended() is not None


@dataclass(frozen=True)
class _Ending:
    """How one fio ended."""

    messages: tuple[str, ...]
    errors: dict[str, int]
    """By job: the errno that ended it, or that it went on after."""
    steady: dict[str, Mapping[str, Any]]
    """By job: what fio says of its steady state."""
    hung: bool
    """Whether processes were left behind in the kernel."""
    overdue: bool
    given_up: int
    """Processes that did not end when they were asked to."""


@dataclass
class FioClient(LoadClient):
    """fio on the targets of a baseline."""

    program: Program
    files: tuple[JobFile, ...]
    places: tuple[JobPlace, ...]
    folder: RunFolder
    recorder: FioRecorder
    progress: ProgressDisplay
    interruption: Interruption
    ledger: Ledger = field(default_factory=Ledger)
    health_meter: JobHealth = field(default_factory=JobHealth)
    warnings: list[RunWarning] = field(default_factory=list)
    given_up: int = 0
    """Processes that took too long and did not end when they were asked to: their last I/Os are in
    no figure."""
    turns: int = 0
    _launch: Launch | None = None
    _active: _ActiveFio | None = None

    def __post_init__(self) -> None:
        self.targets = tuple(place.name for place in self.places)

    def prepare(self, segment: ScheduledSegment) -> None:
        """Make the folders that the job file names, and write the file that fio reads."""
        place, file = self.places[segment.target], _file_of(segment)
        of_run = Segment(segment.target, segment.round, "measured")
        self.recorder.begin_segment(of_run, processes_at_once(file), file.sections)
        self._launch = Launch(
            program=self.program,
            jobs=self._written(file, place),
            folder=place.prepare(file),
            may_write=not isinstance(place, DevicePlace) or place.found.expendable,
            device=place.device,
        )

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        """Start fio."""
        del warm_up_ns  # ramp_time in a job file is its own
        assert self._launch is not None  # noqa: S101 - made by prepare()
        self.health_meter.open()
        process = FioProcess(self._launch)
        self._active = _ActiveFio(segment, _file_of(segment), process, self._launch.folder)

    def watch(self) -> None:
        """Record what has come, and say when no I/O ends."""
        active = self._active
        if active is None:
            return
        if active.deadline.lays_out and active.process.is_at_work() and active.deadline.begin():
            self.health_meter.begin(active.process.pid)
        for text in active.process.documents():
            self._take(active, text)
        for hang in active.watchdog.look(active.deadline):
            self.progress.alarm(hang)

    def running_users(self) -> int:
        """Return how many processes work at once."""
        return 0 if self._active is None else processes_at_once(self._active.file)

    def busy_users(self) -> int:
        """Return 0 when fio has ended, or has taken too long."""
        active = self._active
        if active is None or active.process.ended() is not None:
            return 0
        active.overdue = active.deadline.is_over()
        return 0 if active.overdue else self.running_users()

    def stuck_users(self) -> int:
        """Return how many processes hang in the kernel, or had to be killed."""
        return self.given_up

    def refine(self, tick: Tick) -> Tick:
        """Add how far files are laid out, or how long fio should still take."""
        active = self._active
        if active is None:
            return tick
        if active.deadline.lays_out:
            return replace(tick, laid_out_bytes=active.process.written_bytes())
        return replace(tick, left_s=active.deadline.left_s)

    def end(self, grace_ns: int) -> None:
        """Have fio end: it is asked to, then killed, then left behind.

        Raises:
            ReplayerError: It could not run the jobs, or its results cannot be read or kept.
        """
        active, self._active = self._active, None
        if active is None:
            return
        try:
            self._stop(active, grace_ns / 1e9)
        finally:  # it must not go on where its files are removed next
            gone = active.end()
        if active.is_broken:
            return
        final = self._finish(active)
        self.health_meter.close()
        place = self.places[active.segment.target]
        ending = _ending(active, final, gone=gone)
        self._note(active.segment, place, ending)
        if self.interruption.level is Level.NONE and gone:
            _refuse_failure(active, final, ending, self.folder.path / "events.jsonl")
        self.turns += 1
        if not ending.given_up:
            ask(active.folder, partial(_keep_logs, active.folder, self._kept(active)))
            place.clear()

    def _stop(self, active: _ActiveFio, grace_s: float) -> None:
        """Ask fio to end, and record what comes until it has, or has not within the grace."""
        if active.is_broken or active.process.ended() is not None:
            return
        active.process.stop()
        deadline_s, presses = time.monotonic() + grace_s, self.interruption.presses
        while active.process.ended() is None and time.monotonic() < deadline_s:
            if self.interruption.presses > presses:
                return
            for text in active.process.documents():
                self._take(active, text)
            gevent.sleep(POLL_S)

    def _finish(self, active: _ActiveFio) -> Snapshot | None:
        """Record and keep the last that fio printed; None if there is nothing."""
        for text in active.process.documents():
            active.last = text
        if active.last is None:
            return None
        final = active.parse(active.last)
        self._count(active, self.recorder.finish(final))
        kept = self._kept(active).with_suffix(".json")
        with writing_to(self.folder.path):
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(active.last, encoding="utf-8")
        return final

    def _take(self, active: _ActiveFio, text: str) -> None:
        active.last = text
        active.is_broken = True  # unless all of this succeeds
        gains = self.recorder.take(active.parse(text))
        active.is_broken = False
        active.deadline.note(gains)
        self.health_meter.look(active.process.pid)
        self._count(active, gains)

    def _count(self, active: _ActiveFio, gains: Sequence[Gain]) -> None:
        self.health_meter.add(gains, active.processes)
        for gain in gains:
            if gain.key.op == "transaction":
                place = (active.segment.target, gain.key.transaction)
                seconds = gain.span.end_s - gain.span.start_s
                self.ledger.take(place, gain.histogram, seconds, expected=gain.key.expected)

    def _written(self, file: JobFile, place: JobPlace) -> Path:
        """Return the job file that fio reads, beside the results."""
        suffix = "" if place.device is None else f"-{place.device.name}"
        path = self.folder.path / "fio" / f"{self._stem(file)}{suffix}.fio"
        with writing_to(self.folder.path):
            path.parent.mkdir(exist_ok=True)
            path.write_text(render_job_file(file, place.device), encoding="utf-8")
        return path

    def _stem(self, file: JobFile) -> str:
        """Return what names of what is kept of a job file begin with: files may be namesakes."""
        return f"{self.files.index(file)}-{Path(file.source).stem}"

    def _kept(self, active: _ActiveFio) -> Path:
        """Return where logs of a turn are kept, and with a suffix its results."""
        name = f"{self._stem(active.file)}-{active.segment.target}-{active.segment.round}"
        return self.folder.path / "fio" / name

    def _note(self, segment: ScheduledSegment, place: JobPlace, ending: _Ending) -> None:
        """Keep what fio complained of, and what went wrong."""
        where = {"target": segment.target, "round": segment.round}
        append = self.folder.append_event
        for text in ending.messages:
            append("fio", self.recorder.now_s, {**where, "message": text})
            failed = _FAILED.search(text)
            if failed is not None:
                outcome = _ERRORS.get(failed["outcome"], failed["outcome"])
                fields = {**where, **failed.groupdict(), "outcome": outcome}
                append("error", self.recorder.now_s, fields)
        for name, found in ending.steady.items():
            fields = {**where, "job": name, "attained": bool(found.get("attained"))}
            fields |= {key: found[key] for key in ("ss", "criterion") if key in found}
            append("steady state", self.recorder.now_s, fields)
        for name, number in ending.errors.items():
            outcome = errno.errorcode.get(number, "EIO")
            self._warn(
                f"{place.name}: job {name} failed with {outcome}", "events.jsonl has the details"
            )
        if ending.overdue:
            killed = ", then killed; its last I/Os are in no figure" if ending.given_up else ""
            message = f"{place.name}: fio did not end in time and was stopped{killed}"
            self._warn(message, "a call may hang there; check whether the mount answers")
        self.given_up += ending.given_up
        if ending.hung:
            place.is_hanging = True
            self._warn(f"{place.name}: fio hangs in the kernel and was abandoned", "")

    def _warn(self, message: str, hint: str) -> None:
        self.warnings.append(RunWarning(kind="other", message=message, hint=hint))


def _file_of(segment: ScheduledSegment) -> JobFile:
    assert isinstance(segment, JobSegment)  # noqa: S101 - schedule_jobs() makes no others
    return segment.file


def _keep_logs(folder: Path, kept: Path) -> None:
    """Keep the logs that a job file asked for (write_bw_log and its like)."""
    for path in sorted(folder.glob("*.log"))[:MOST_LOGS]:
        if _LOG.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
            kept.mkdir(parents=True, exist_ok=True)
            # Who could plant a link there meanwhile would have it copied as a link.
            shutil.copyfile(path, kept / path.name, follow_symlinks=False)


def _ending(active: _ActiveFio, final: Snapshot | None, *, gone: bool) -> _Ending:
    jobs = () if final is None else final.jobs
    return _Ending(
        messages=tuple(text for text in active.process.messages if not _QUIET.search(text)),
        errors={job.name: job.error for job in jobs if job.error or job.errors},
        steady={job.name: job.steady for job in jobs if job.steady},
        hung=not gone,
        overdue=active.overdue,
        # Whom a user's second Ctrl-C killed may only have been slow.
        given_up=active.killed if active.overdue or not gone else 0,
    )


def _refuse_failure(
    active: _ActiveFio, final: Snapshot | None, ending: _Ending, events: Path
) -> None:
    """Refuse a fio that was cut off, or that did nothing.

    Raises:
        OutsideError: Says why.
    """
    source, code = active.file.source, active.process.ended()
    killed = None if ending.overdue else _killed_by(active.process.messages, code)
    if killed is not None:
        message = f"{source}: fio or one of its jobs got {killed}"
        hint = "results so far are kept; dmesg shows whether memory ran out"
        raise OutsideError(message, hint=hint)
    done = final is not None and any(
        share.total for job in final.jobs for share in job.shares.values()
    )
    if done or (not code and not ending.errors):
        return
    ended = "it did not end and was killed" if ending.overdue else f"exit code {code}"
    said = next((text for text in ending.messages if text), ended)
    message = f"{source}: fio failed: {said}"
    everything = " ".join(ending.messages)
    known = (hint for words, hint in _HINTS if words in everything)
    raise OutsideError(message, hint=next(known, f"the output of fio is in {events}"))


def _tells_late(section: Section) -> bool:
    """Whether a job lays out its files itself, or fio keeps a clock in a thread like a job's."""
    return section.value("create_serialize") == "0" or section.value("gtod_cpu") is not None


def _killed_by(messages: Sequence[str], code: int | None) -> str | None:
    """Return the signal that ended fio or one of its jobs; None if none did.

    Of a job that was killed fio says so, and nothing in its results.
    """
    found = (_SIGNALLED.search(text) for text in messages)
    number = next((int(match["signal"]) for match in found if match), -(code or 0))
    if number <= 0:
        return None
    known = number in {*signal.Signals}
    return signal.Signals(number).name if known else f"signal {number}"


_HINTS = (
    ("O_DIRECT", "this file system has no O_DIRECT; use a job file without direct=1"),
    ("not loadable", "this fio has no such ioengine; use psync, or install another fio"),
    ("io_queue_init", "the kernel allows no more asynchronous I/O; see /proc/sys/fs/aio-max-nr"),
    ("Operation not permitted", "a container may forbid it; use ioengine=psync or libaio"),
    ("No space left", NO_ROOM),
)
