"""A baseline from the checks of its targets to the removal of its folders.

Each job has its turn on every target in every round: A B A B, so that noise that comes and goes
hits all targets.
"""

import errno
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE, ReplayerError
from replayer.fio import (
    OPS,
    JobFile,
    Launch,
    Program,
    Recorder,
    Scale,
    check_values,
    find_fio,
    processes,
    processes_at_once,
    render_job_file,
    scaled,
    seconds_needed,
)
from replayer.fio.devices import parse_devices
from replayer.fio.job_health import JobHealth
from replayer.fio.jobs import document_of, load_jobs
from replayer.fio.order import BaselineOrder, Size
from replayer.fio.places import DevicePlace, FolderPlace, JobPlace
from replayer.fio.run_record import baseline_facts, describe_load, marker_note, name_of
from replayer.fio.turn import JobProgress, TurnEnding, TurnObserver, play_turn
from replayer.measure import RunWarning, Segment, create_run_folder
from replayer.measure.runfolder import writing_to
from replayer.run.interruption import Interruption, Level
from replayer.run.results import Shown, say_interrupted, say_problems, show_results
from replayer.run.schedule import default_rounds
from replayer.run.targets import parse_targets, refuse_aliases
from replayer.run.watchdog import ask
from replayer.run.writer import RunEnding, RunWriter
from replayer.verdict.threshold import Names, check_names, parse_threshold

__all__ = ["run_baseline", "scale_jobs"]


_FAILED = re.compile(r"io_u error on file (?P<path>.+?): (?P<outcome>.+?): (?P<op>[a-z]+) offset=")
"""As log_io_error() of fio's io_u.c puts it."""
_ERRORS = {os.strerror(number): name for number, name in errno.errorcode.items()}

_LOG = re.compile(r".+_(bw|lat|clat|slat|iops|clat_hist)(\.\d+)?\.log")
"""How fio names logs, see fio(1), write_bw_log."""
MOST_LOGS = 1000  # chosen: three of each process of a large job


@dataclass
class _Baseline:
    """A baseline that runs."""

    program: Program
    files: tuple[JobFile, ...]
    places: tuple[JobPlace, ...]
    rounds: int
    writer: RunWriter
    recorder: Recorder
    progress: JobProgress
    interruption: Interruption
    stop_timeout_s: float
    health_meter: JobHealth = field(default_factory=JobHealth)
    warnings: list[RunWarning] = field(default_factory=list)
    given_up: int = 0
    turns: int = 0
    interrupted: bool = False
    refused: ReplayerError | None = None

    def play(self) -> None:
        """Run every job on every target in every round, until the user wishes an end."""
        for number in range(self.rounds):
            for file in self.files:
                for index, place in enumerate(self.places):
                    if self.interruption.level > Level.NONE or self.given_up:
                        return
                    self._turn(Segment(index, number, "measured"), file, place)

    def _turn(self, segment: Segment, file: JobFile, place: JobPlace) -> None:
        folder, names = place.prepare(file), [section.name for section in file.sections]
        self.recorder.begin_segment(segment, processes_at_once(file), file.sections)
        turn = f"round {segment.round + 1} of {self.rounds}, " if self.rounds > 1 else ""
        self.progress.begin(f"{turn}{place.name}, {', '.join(names)}", segment.target, file)
        progress = self.progress
        watch = TurnObserver(
            recorder=self.recorder,
            health_meter=self.health_meter,
            interruption=self.interruption,
            show=progress.show,
            lay_out=progress.lay_out,
            say=progress.say,
            stop_timeout_s=self.stop_timeout_s,
        )
        launch = Launch(
            program=self.program,
            jobs=self._written(file, place),
            folder=folder,
            may_write=not isinstance(place, DevicePlace) or place.found.expendable,
            device=place.device,
        )
        stem = f"{self._stem(file)}-{segment.target}-{segment.round}"
        ending = play_turn(launch, file, watch, self.writer.folder.path / "fio" / f"{stem}.json")
        self._note(segment, place, ending)
        if ending.failure is not None:
            raise ending.failure
        self.turns += 1
        if not ending.given_up:
            kept = self.writer.folder.path / "fio" / stem
            ask(folder, partial(_keep_logs, folder, kept))
            place.clear(self.interruption)

    def _written(self, file: JobFile, place: JobPlace) -> Path:
        """Return the job file that fio reads, beside the results."""
        suffix = "" if place.device is None else f"-{place.device.name}"
        path = Path(self.writer.folder.path, "fio", f"{self._stem(file)}{suffix}.fio")
        with writing_to(self.writer.folder.path):
            path.parent.mkdir(exist_ok=True)
            path.write_text(render_job_file(file, place.device), encoding="utf-8")
        return path

    def _stem(self, file: JobFile) -> str:
        """Return what names of what is kept of a job file begin with: files may be namesakes."""
        return f"{self.files.index(file)}-{Path(file.source).stem}"

    def _note(self, segment: Segment, place: JobPlace, ending: TurnEnding) -> None:
        """Keep what fio complained of, and what went wrong."""
        where = {"target": segment.target, "round": segment.round}
        append = self.writer.folder.append_event
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
            self._warn(f"{place.name}: job {name} failed with {outcome}", "see events.jsonl")
        if ending.overdue:
            killed = ", then killed: its last I/Os are in no figure" if ending.given_up else ""
            message = f"{place.name}: fio did not end in time and was stopped{killed}"
            self._warn(message, "a call may hang there: see whether the mount still answers")
        self.given_up += ending.given_up
        if ending.hung:
            place.is_hanging = True
            self._warn(f"{place.name}: fio hangs in the kernel and was left behind", "")

    def _warn(self, message: str, hint: str) -> None:
        self.warnings.append(RunWarning(kind="other", message=message, hint=hint))


def run_baseline(order: BaselineOrder) -> int:
    """Run a baseline, show its results, and return the exit code.

    Raises:
        ReplayerError: Something refuses; what was made until then is removed again.
    """
    order.files.check()
    program = find_fio()
    places = _places(order)
    _look_at(places)
    files = scale_jobs(_jobs(order, places), order, places)
    for file in files:
        check_values(program, file)
    _check_thresholds(order, files, places)
    rounds = order.rounds or default_rounds(len(places))
    interruption = Interruption()
    interruption.watch()
    progress = JobProgress([place.name for place in places], quiet=order.quiet)
    writer = RunWriter(create_run_folder(order.output), document_of(files, program.version))
    targets = tuple(place.facts(index) for index, place in enumerate(places))
    load = describe_load(files, rounds)
    writer.begin(baseline_facts(order, program, files, targets, load))
    progress.announce(name_of(files), _expected_s(files, len(places) * rounds))
    with ExitStack() as leaving:
        leaving.callback(interruption.settle)
        leaving.callback(progress.close)
        recorder = Recorder(writer.folder.path)
        leaving.callback(recorder.close)
        baseline = _Baseline(
            program=program,
            files=files,
            places=places,
            rounds=rounds,
            writer=writer,
            recorder=recorder,
            progress=progress,
            interruption=interruption,
            stop_timeout_s=order.stop_timeout_s,
        )
        return _end(baseline, order, _play(baseline))


def _play(baseline: _Baseline) -> list[ReplayerError]:
    """Make the folders, run the jobs, remove the folders; return what refused.

    What was measured is kept before anything is removed.
    """
    problems: list[ReplayerError] = []
    try:
        try:
            _prepare(baseline)
            baseline.play()
        except ReplayerError as error:
            problems.append(error)
        _conclude(baseline, problems)
    finally:
        problems.extend(_put_away(baseline))
    return problems


def _prepare(baseline: _Baseline) -> None:
    """Make the folders, and refuse targets that lack what a job needs."""
    note = marker_note(baseline.writer.folder.id, baseline.files)
    for place in baseline.places:
        place.create(baseline.writer.folder.id, note)
    for place in baseline.places:
        for file in baseline.files:
            place.require(file)


def _conclude(baseline: _Baseline, problems: Sequence[ReplayerError]) -> None:
    """Write how it went."""
    failure = problems[0] if problems else None
    baseline.interrupted = baseline.interruption.level > Level.NONE
    baseline.refused = baseline.writer.end(
        RunEnding(
            status="failed" if failure else "interrupted" if baseline.interrupted else "finished",
            health=baseline.health_meter.health(baseline.given_up),
            failure=failure,
            warnings=tuple(baseline.warnings),
        )
    )


def _put_away(baseline: _Baseline) -> Iterator[ReplayerError]:
    """Remove the folders, and yield what is left behind."""
    for place in baseline.places:
        hint = f"remove it with: replayer clean {shlex.quote(place.left())}"
        try:
            place.remove(baseline.interruption)
        except ReplayerError as error:
            yield LeftBehindError(str(error), hint=hint)


def _keep_logs(folder: Path, kept: Path) -> None:
    """Keep the logs that a job file asked for (write_bw_log and its like)."""
    for path in sorted(folder.glob("*.log"))[:MOST_LOGS]:
        if _LOG.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
            kept.mkdir(parents=True, exist_ok=True)
            # Who could plant a link there meanwhile would have it copied as a link.
            shutil.copyfile(path, kept / path.name, follow_symlinks=False)


class LeftBehindError(ReplayerError):
    """A folder could not be removed."""

    exit_code = EXIT_ENVIRONMENT


def _end(baseline: _Baseline, order: BaselineOrder, problems: Sequence[ReplayerError]) -> int:
    """Show the results, and return the exit code."""
    writer = baseline.writer
    baseline.progress.close()
    shown = Shown(EXIT_INCONCLUSIVE)
    if baseline.turns:
        shown = show_results(writer.folder, writer.run, order.results, order.files)
    told = say_problems([*problems, baseline.refused, *shown.problems])
    if told:
        return told[0].exit_code
    if baseline.interrupted:
        say_interrupted(writer.folder)
    return shown.exit_code


def _look_at(places: Sequence[JobPlace]) -> None:
    for place in places:
        place.check()
    targets = [place.target for place in places if isinstance(place, FolderPlace)]
    if len(targets) > 1:
        ask(targets[0].paths[0], partial(refuse_aliases, targets))


def _places(order: BaselineOrder) -> tuple[JobPlace, ...]:
    if not order.targets and not order.devices:
        message = "a target is missing"
        raise ReplayerError(message, hint="say where to measure: --target [NAME=]PATH")
    folders = [FolderPlace(target) for target in parse_targets(order.targets)]
    devices = parse_devices(order.devices, order.expendable)
    found: tuple[JobPlace, ...] = (
        *folders,
        *(DevicePlace(name, device) for name, device in devices.items()),
    )
    names = [place.name for place in found]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        message = f"two targets are named {doubled!r}"
        raise ReplayerError(message, hint="give each a name of its own: --target NAME=PATH")
    return found


def _jobs(order: BaselineOrder, places: Sequence[JobPlace]) -> tuple[JobFile, ...]:
    """Load the job files, as they are for every target."""
    loaded = [load_jobs(order.jobs, place.device) for place in places]
    return loaded[0]


def _check_thresholds(
    order: BaselineOrder, files: Sequence[JobFile], places: Sequence[JobPlace]
) -> None:
    thresholds = [parse_threshold(text, "--threshold") for text in order.thresholds]
    names = Names(
        targets=tuple(place.name for place in places),
        transactions=tuple(section.name for file in files for section in file.sections),
        ops=OPS,
    )
    check_names(thresholds, names)


def _expected_s(files: Sequence[JobFile], turns: int) -> float | None:
    each = [seconds_needed(file) for file in files]
    known = [seconds for seconds in each if seconds is not None]
    return sum(known) * turns if len(known) == len(each) else None


STEP_BYTES = 1 << 20  # chosen: sizes stay multiples of every usual block size
LEAST_BYTES = STEP_BYTES


def scale_jobs(
    files: Sequence[JobFile], order: BaselineOrder, places: Sequence[JobPlace]
) -> tuple[JobFile, ...]:
    """Return the job files as they are run.

    Raises:
        ReplayerError: A target cannot be asked for its free space.
    """
    free_bytes = None
    if order.size is not None and order.size.share is not None:
        free_bytes = min(place.facts(0).mounts[0].space.bytes_free for place in places)
    return tuple(
        scaled(file, Scale(_size_bytes(file, order.size, free_bytes), order.runtime_s, order.seed))
        for file in files
    )


def _size_bytes(file: JobFile, size: Size | None, free_bytes: int | None) -> int | None:
    if size is None or size.share is None or free_bytes is None:
        return None if size is None else size.size_bytes
    own = free_bytes * size.share / sum(processes(section) for section in file.sections)
    return max(int(own) // STEP_BYTES * STEP_BYTES, LEAST_BYTES)
