"""A baseline from the checks of its targets to the removal of its folders.

Each job has its turn on every target in every round: A B A B, so that noise that comes and goes
hits all targets.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from replayer.errors import EXIT_INCONCLUSIVE, OutsideError, ReplayerError
from replayer.fio.amounts import processes, seconds_needed
from replayer.fio.checking import check_values
from replayer.fio.client import FioClient, schedule_jobs
from replayer.fio.devices import parse_devices
from replayer.fio.jobfile import JobFile
from replayer.fio.jobs import document_of, load_jobs
from replayer.fio.options import FILE_CALLS
from replayer.fio.places import DevicePlace, FolderPlace, JobPlace
from replayer.fio.program import find_fio
from replayer.fio.recorder import FioRecorder
from replayer.fio.run_record import BaselineOrder, Size, describe_baseline, name_of, note_of_jobs
from replayer.fio.snapshot import WAYS
from replayer.fio.writing import Scale, scaled
from replayer.measure.runfolder import create_run_folder
from replayer.measure.units import format_time_ns
from replayer.run.controller import PhaseController, Terms
from replayer.run.interruption import Interruption, Level
from replayer.run.preflight import check_caches, check_cpus
from replayer.run.progress import make_progress
from replayer.run.results import Shown, say_interrupted, say_problems, show_results
from replayer.run.target_dir import DirContext
from replayer.run.targets import parse_targets, refuse_aliases
from replayer.run.watchdog import ask
from replayer.run.writer import RunEnding, RunWriter
from replayer.verdict.threshold import Names, check_names, parse_threshold


def run_baseline(order: BaselineOrder) -> int:
    """Run a baseline, show its results, and return the exit code.

    Raises:
        ReplayerError: Something refuses; what was made until then is removed again.
    """
    order.files.check()
    program = find_fio()
    progress, interruption = make_progress(quiet=order.quiet), Interruption()
    places = _places(order, DirContext(progress, interruption, order.stop_timeout_s))
    _look_at(places)
    files = scale_jobs(_jobs(order, places), order, places)
    for file in files:
        check_values(program, file)
    _check_thresholds(order, files, places)
    interruption.watch()
    check_cpus(progress, interruption, asks=order.asks)
    folder = create_run_folder(order.output)
    targets = tuple(place.facts(index) for index, place in enumerate(places))
    check_caches(progress, targets)
    run = describe_baseline(folder.id, order, program, files, targets)
    rounds = run.load.rounds
    writer = RunWriter(folder, document_of(files, program.version), run)
    progress.say(f"fio: {name_of(files)}: {_long(files, len(places) * rounds)}")
    with ExitStack() as leaving:
        leaving.callback(interruption.settle)
        leaving.callback(progress.close)
        recorder = FioRecorder(writer.folder.path)
        client = FioClient(program, files, places, writer.folder, recorder, progress, interruption)
        terms = Terms(
            schedule=schedule_jobs(files, len(places), rounds),
            rounds=rounds,
            warm_up_ns=0,
            ends_by_count=True,
            events=None,
            stop_timeout_s=order.stop_timeout_s,
            progress=progress,
            interruption=interruption,
        )
        return _end(client, order, writer, _play(client, terms, writer))


def _play(client: FioClient, terms: Terms, writer: RunWriter) -> list[ReplayerError]:
    """Make the folders, run the jobs, remove the folders; return what refused.

    What was measured is kept before anything is removed.
    """
    problems: list[ReplayerError | None] = []
    try:
        problems.append(_run(client, terms, writer))
        problems.append(_conclude(client, writer, problems[0]))
    finally:
        problems.extend(_put_away(client))
    return [problem for problem in problems if problem is not None]


def _run(client: FioClient, terms: Terms, writer: RunWriter) -> ReplayerError | None:
    """Make the folders, refuse targets that lack what a job needs, and run the jobs."""
    note = note_of_jobs(writer.folder.id, client.files)
    try:
        for place in client.places:
            place.create(writer.folder.id, note)
        for place in client.places:
            for file in client.files:
                place.check_job(file)
    except ReplayerError as error:
        return error
    controller = PhaseController(terms, client)
    controller.run()
    return controller.failure


def _conclude(
    client: FioClient, writer: RunWriter, failure: ReplayerError | None
) -> ReplayerError | None:
    """Write how it went; return what refuses to take it."""
    interrupted = client.interruption.level > Level.NONE
    return writer.end(
        RunEnding(
            status="failed" if failure else "interrupted" if interrupted else "finished",
            health=client.health_meter.health(client.given_up),
            failure=failure,
            warnings=tuple(client.warnings),
        )
    )


def _put_away(client: FioClient) -> Iterator[ReplayerError]:
    """Remove the folders, and yield what is left behind."""
    for place in client.places:
        hint = f"remove it with: replayer clean {shlex.quote(place.left())}"
        try:
            place.remove()
        except ReplayerError as error:
            yield OutsideError(str(error), hint=hint)


def _end(
    client: FioClient, order: BaselineOrder, writer: RunWriter, problems: Sequence[ReplayerError]
) -> int:
    """Show the results, and return the exit code."""
    interrupted = writer.run.status == "interrupted"
    client.progress.close()
    shown = Shown(EXIT_INCONCLUSIVE)
    if client.turns:
        shown = show_results(writer.folder, writer.run, order.results, order.files)
    told = say_problems([*problems, *shown.problems])
    if told:
        return told[0].exit_code
    if interrupted:
        say_interrupted(writer.folder)
    return shown.exit_code


def _look_at(places: Sequence[JobPlace]) -> None:
    for place in places:
        place.check()
    targets = [place.target for place in places if isinstance(place, FolderPlace)]
    if len(targets) > 1:
        ask(targets[0].paths[0], partial(refuse_aliases, targets))


def _places(order: BaselineOrder, works: DirContext) -> tuple[JobPlace, ...]:
    if not order.targets and not order.devices:
        message = "--target is missing"
        raise ReplayerError(message, hint="name the folder to measure: --target [NAME=]PATH")
    folders = [FolderPlace(target, works) for target in parse_targets(order.targets)]
    devices = parse_devices(order.devices, order.expendable)
    found: tuple[JobPlace, ...] = (
        *folders,
        *(DevicePlace(name, device) for name, device in devices.items()),
    )
    names = [place.name for place in found]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        message = f"two targets are named {doubled!r}"
        raise ReplayerError(message, hint="give each target its own name: --target NAME=PATH")
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
        ops=(*WAYS.values(), *FILE_CALLS.values()),
    )
    check_names(thresholds, names)


def _long(files: Sequence[JobFile], turns: int) -> str:
    """Say how long so many turns take."""
    each = [seconds_needed(file) for file in files]
    if None in each:
        return "until the work is done"
    seconds = sum(filter(None, each)) * turns
    return f"at least {format_time_ns(seconds * 1e9)}, and the time to lay out files"


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
