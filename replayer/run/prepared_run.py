"""A run from the checks of its targets to the removal of its folders: what is made, and unmade.

Nothing is timed here. The controller runs the segments of a session; the listeners tie both to
Locust.
"""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from replayer._native import Engine
from replayer.errors import ReplayerError
from replayer.measure.runfolder import create_run_folder
from replayer.plan.summary import describe_plan
from replayer.run.caches import CacheProcedure, choose_procedure, remount
from replayer.run.duet import check_apart
from replayer.run.interruption import InterruptedRunError, Interruption
from replayer.run.marker import marker_note
from replayer.run.neighbour import CheckedNeighbour
from replayer.run.options import Settings
from replayer.run.preflight import check_caches, check_cpus
from replayer.run.progress import ProgressDisplay
from replayer.run.replays import load_plan, make_event_log
from replayer.run.schedule import ScheduledSegment
from replayer.run.spawner import Spawner
from replayer.run.target_dir import AWAY, HANGING, LayoutContext, TargetDir
from replayer.run.targets import (
    DEFAULT_FOLDER,
    MountError,
    NamedTarget,
    TargetError,
    add_settings,
    check_place,
    explain,
    parse_targets,
    refuse_aliases,
)
from replayer.run.threads import call_in_thread, call_within
from replayer.run.workload import Workload, changes_files
from replayer.run.writer import RunEnding, RunWriter, describe_run, describe_targets, find_targets

CHECK_S = 20.0  # chosen: a mount that takes longer to be looked at is taken for dead
OVERHEAD_OPS = 100_000  # chosen: 10 ms at the promised 100 ns an op


@dataclass(frozen=True)
class RunRequest:
    """What a run is made from."""

    settings: Settings
    workload: Workload
    targets: tuple[NamedTarget, ...]
    rounds: int
    schedule: tuple[ScheduledSegment, ...]
    progress: ProgressDisplay
    interruption: Interruption
    spawner: Spawner
    spawn_rate: float = 1.0
    neighbour: CheckedNeighbour | None = None
    """What runs beside the users of each second setting."""

    @property
    def users(self) -> int:
        """How many users there are at the same time: of a duet, those of both targets."""
        return self.workload.plan.users * (len(self.targets) if self.workload.duet else 1)


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready for its users."""

    request: RunRequest
    target_dirs: tuple[TargetDir, ...]
    procedure: CacheProcedure
    writer: RunWriter
    engine: Engine
    overhead_ns: float
    restless: bool
    """Whether running changes what was laid out."""


def chosen_targets(settings: Settings) -> tuple[NamedTarget, ...]:
    """Return the targets that were asked for; without any, the embedded default.

    Raises:
        TargetError: They cannot be meant.
    """
    if settings.targets and settings.reuse:
        message = "--target and --reuse exclude each other: a kept folder is already a target"
        raise TargetError(message)
    found = parse_targets(settings.targets or settings.reuse or (str(DEFAULT_FOLDER),))
    return found if settings.neighbour is None else add_settings(found, settings.neighbour.name)


def check_targets(request: RunRequest) -> None:
    """Look at the targets, after making the embedded default.

    Raises:
        ReplayerError: One of them cannot be used.
    """
    if _is_default(request.settings):
        _make_default_folder()
    targets = [target for target in request.targets if not target.is_beside]
    for target in targets:
        check_in_time(target)
    _look_in_time(targets[0].paths[0], partial(refuse_aliases, targets))


def check_in_time(target: NamedTarget) -> None:
    """Look at a target, each of its mount points in bounded time.

    Raises:
        ReplayerError: It cannot be used.
    """
    for path in target.paths:
        _look_in_time(path, partial(check_place, target, path))


def _look_in_time(path: Path, look: Callable[[], None]) -> None:
    try:
        call_within(CHECK_S, look, str(path))
    except TimeoutError as error:
        raise explain(path, error) from error


def layout_of(request: RunRequest) -> LayoutContext:
    """Return what the folders of a run have in common."""
    return LayoutContext(
        request.progress,
        request.interruption,
        request.spawner.stop_timeout_s,
        load_plan(request.workload.plan),
    )


def prepare_run(request: RunRequest) -> PreparedRun:
    """Make the folders, lay out the datasets and make the engine.

    Raises:
        ReplayerError: Something refuses; what was made until then is removed again.
    """
    settings, workload = request.settings, request.workload
    procedure = choose_procedure(workload.cache, settings.remount_command)
    check_procedure(procedure, request.rounds)
    check_targets(request)
    if workload.duet:
        check_apart(describe_targets(request.targets))
    check_cpus(request.progress, request.interruption, asks=settings.asks)
    works = layout_of(request)
    folder = create_run_folder(settings.output, settings.runs)
    found = find_targets(request.targets, procedure)
    check_caches(request.progress, found.targets)
    run = describe_run(folder.id, workload, settings.command, request.rounds, found)
    writer = RunWriter(folder, workload.plan.document(), run)
    target_dirs = [TargetDir(target, works) for target in request.targets]
    try:
        event_log = make_event_log(settings.replay, writer.folder.path)
        writer.add_to_replay(lanes=works.plan.replay_lanes, event_log=event_log)
        _prepare(request, writer, target_dirs, procedure)
        return start_engine(request, writer, target_dirs, procedure, event_log=event_log)
    except BaseException as error:
        _abandon(request, writer, target_dirs, error)
        raise


def start_engine(
    request: RunRequest,
    writer: RunWriter,
    target_dirs: Sequence[TargetDir],
    procedure: CacheProcedure,
    **more: Any,  # noqa: ANN401 - see the engine
) -> PreparedRun:
    """Make the engine of targets that are laid out."""
    engine = Engine(
        target_dirs[0].works.plan,
        [target_dir.sandboxes for target_dir in target_dirs],
        record=str(writer.folder.path),
        abreast=request.workload.duet,
        **more,
    )
    return PreparedRun(
        request=request,
        target_dirs=tuple(target_dirs),
        procedure=procedure,
        writer=writer,
        engine=engine,
        overhead_ns=call_in_thread(engine.overhead_ns, OVERHEAD_OPS),
        restless=changes_files(request.workload.plan),
    )


@dataclass(frozen=True)
class Leftovers:
    """What is still on the targets, each in a line."""

    kept: tuple[str, ...]
    left: tuple[str, ...]
    """Because it could not be removed."""
    losses: tuple[str, ...] = ()
    """What was taken away from the targets meanwhile, in sentences."""


def find_losses(session: PreparedRun, *, hung: bool) -> tuple[str, ...]:
    """Say which folders of a run, whose engine is closed, were taken away while it ran.

    Where calls hang and it is not known on which target, none is looked at.
    """
    if hung and not any(target_dir.is_hanging for target_dir in session.target_dirs):
        return ()
    found = (target_dir.find_loss() for target_dir in session.target_dirs)
    return tuple(loss.says for loss in found if loss is not None)


def put_away(session: PreparedRun, *, hung: bool) -> Leftovers:
    """Remove the folders of a run, whose engine is closed, or leave them for another run.

    Where calls hang and it is not known on which target, nothing more is asked of any.
    """
    settings = session.request.settings
    nowhere = hung and not any(target_dir.is_hanging for target_dir in session.target_dirs)
    kept: list[str] = []
    left: list[str] = []
    losses: list[str] = []
    for target_dir in session.target_dirs:
        loss = None if nowhere else target_dir.find_loss()  # may find that it hangs
        if loss is not None:
            losses.append(loss.says)
            left.append(loss.remedy)
            target_dir.forget()
        elif nowhere or target_dir.is_hanging:
            left.extend(target_dir.say_left(HANGING))
        elif settings.keep or settings.reuse:
            kept.append(_keep(session, target_dir))
        else:
            left.extend(_remove(target_dir))
    _remove_default_folder(settings)
    return Leftovers(tuple(kept), tuple(left), tuple(losses))


def _prepare(
    request: RunRequest,
    writer: RunWriter,
    target_dirs: Sequence[TargetDir],
    procedure: CacheProcedure,
) -> None:
    make_folders(request, target_dirs, writer.folder.id)
    for target_dir in target_dirs:
        target_dir.lay_out()
    if procedure.remount_command is not None:
        remount(procedure.remount_command, target_dirs)


def make_folders(request: RunRequest, target_dirs: Sequence[TargetDir], run: str) -> None:
    """Make the run's folder on each target, or take over that of an earlier run.

    Raises:
        ReplayerError: The mount refuses, has no room, or holds something else than the plan says.
    """
    workload = request.workload
    needs = describe_plan(workload.plan)
    note = marker_note(run, workload.plan.fingerprint, workload.source)
    for target_dir in target_dirs:
        if request.settings.reuse:
            target_dir.take_over(note)
            target_dir.verify()
            # What an earlier run laid out does not say that it is of this one.
            target_dir.fresh = not workload.plan.verifies
        else:
            target_dir.create(target_dir.target.folder_of(run), note)
            target_dir.require(needs.space_bytes, needs.inodes)


def check_procedure(procedure: CacheProcedure, rounds: int) -> None:
    """Refuse rounds that a mount cannot be taken away between.

    Raises:
        ReplayerError: There are several.
    """
    if procedure.remount_command is not None and rounds > 1:
        message = f"--remount-command needs one round, got {rounds}"
        hint = "users of earlier rounds use the mount: add --rounds 1"
        raise ReplayerError(message, hint=hint)


def _abandon(
    request: RunRequest, writer: RunWriter, target_dirs: Sequence[TargetDir], error: BaseException
) -> None:
    """Remove what was made for a run that will not be, and say so in its folder."""
    interrupted = isinstance(error, InterruptedRunError)
    writer.end(RunEnding("interrupted" if interrupted else "failed", failure=error))
    request.progress.close()
    for target_dir in target_dirs:
        if not request.settings.reuse:
            for line in _lines_of_abandoned(target_dir):
                sys.stderr.write(f"{line}\n")
        elif target_dir.sandboxes:
            with suppress(ReplayerError):
                target_dir.hand_on()
    request.progress.close()  # once more: a removal shows how far it is
    _remove_default_folder(request.settings)


def _keep(session: PreparedRun, target_dir: TargetDir) -> str:
    """Leave a folder for another run, which may take it over once it is as it shall be."""
    folders = ",".join(sandbox.path for sandbox in target_dir.sandboxes)
    undone = _restore(session, target_dir)
    if not target_dir.is_hanging:
        with suppress(ReplayerError):
            target_dir.hand_on()
    if session.request.settings.keep == "used":
        return f"kept as the users left it: {target_dir.target.name}={folders}"
    if undone is not None:
        why = f"not laid out again ({undone}), and --reuse would reject it"
        return f"kept, but {why}: {target_dir.target.name}={folders}"
    return f"kept; use it again with --reuse {shlex.quote(f'{target_dir.target.name}={folders}')}"


def _restore(session: PreparedRun, target_dir: TargetDir) -> str | None:
    """Lay out anew what users have changed, if that is wanted; returns why it could not be."""
    if session.request.settings.keep == "used" or not session.restless:
        return None
    if session.request.interruption.ends_restoring():
        return "interrupted"
    try:
        target_dir.restore()
    except InterruptedRunError:
        return "interrupted"
    except ReplayerError as error:
        return str(error)
    return None


def _lines_of_abandoned(target_dir: TargetDir) -> list[str]:
    if target_dir.is_hanging:
        return target_dir.say_left(HANGING)
    if not target_dir.sandboxes:
        return target_dir.say_left(AWAY)
    loss = target_dir.find_loss()
    return _remove(target_dir) if loss is None else [loss.remedy]


def _remove(target_dir: TargetDir) -> list[str]:
    try:
        target_dir.remove()
    except ReplayerError as error:
        return target_dir.say_left(str(error))
    return []


def _is_default(settings: Settings) -> bool:
    return not settings.targets and not settings.reuse


def _make_default_folder() -> None:
    try:
        DEFAULT_FOLDER.mkdir(exist_ok=True)
    except OSError as error:
        path, reason = DEFAULT_FOLDER.absolute(), os.strerror(error.errno or 0).lower()
        message = f"{path}: a run without --target is laid out there: {reason}"
        raise MountError(message, hint="give a folder to run in: --target PATH") from error


def _remove_default_folder(settings: Settings) -> None:
    """Remove the embedded default's folder when nothing is in it any more."""
    if _is_default(settings):
        with suppress(OSError):
            DEFAULT_FOLDER.rmdir()
