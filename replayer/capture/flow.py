"""The order of a capture: check, try, list, record, compile, and tell.

Everything that can be refused is refused before the command starts; everything that was recorded is
kept, whatever happens afterwards.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replayer.capture.calibration import Calibration
from replayer.capture.compilation import (
    Compilation,
    Known,
    compile_trace,
    way_to_compile,
    write_prelude,
)
from replayer.capture.ebpf import EbpfRecorder, close_probes
from replayer.capture.flight import Dump, FlightPlan, FlightRecorder, open_flight
from replayer.capture.order import (
    Attach,
    CaptureOrder,
    FlightOrder,
    RecordedCommand,
    RecorderChoice,
    Verbosity,
)
from replayer.capture.processes import (
    ProcessState,
    ancestors_of,
    families_of,
    is_running,
    read_own_state,
    read_state,
)
from replayer.capture.progress import Progress, make_progress, say
from replayer.capture.recorder import Recorded, Recorder
from replayer.capture.recording import StraceRecorder
from replayer.capture.refusal import NothingRecordedError, TracerError
from replayer.capture.roots import Root, check_roots, doubts_of
from replayer.capture.sidecar import (
    FlightState,
    RecorderState,
    RootState,
    Sidecar,
    TimeState,
    read_time,
)
from replayer.capture.signals import Inbox
from replayer.capture.staging import Staging, make_staging
from replayer.capture.tree import Listed, Listing, list_tree
from replayer.capture.untraced_runs import Preparation, UntracedRuns, on_one_cpu, run_untraced
from replayer.capture.views import views_of
from replayer.errors import ReplayerError
from replayer.measure.units import format_about, format_bytes, format_count
from replayer.supervisor import before_leaving, end_at_second, give_up_on
from replayer.trace.importing import ComputeTime, Untraced, explain_empty

__all__ = ["capture"]

_NAMES = {"ebpf": "eBPF", "strace": "strace"}


def check_processes(pids: Sequence[int]) -> None:
    """Make sure that processes can be recorded.

    Raises:
        ReplayerError: There is no such process, or recording it would record this program.
    """
    for pid in pids:
        if not is_running(pid):
            raise ReplayerError(f"-p {pid}: no such process", hint="find it with: pgrep -a NAME")
        if pid in ancestors_of(os.getpid()):
            message = f"-p {pid}: this program is a descendant of it and would record itself"
            raise ReplayerError(message, hint="start the capture from another terminal")


def check_command(name: str) -> None:
    """Make sure that a command would be found as a shell finds it.

    Raises:
        ReplayerError: There is none, or it cannot be executed.
    """
    if shutil.which(name) is not None:
        return
    message = f"{name}: command not found, or not executable"
    raise ReplayerError(message, hint="write the command after --, as in: -- tar xf a.tar")


@dataclass(frozen=True)
class _Capture:
    """What does not change from here on.

    The working directory is that of the beginning: the command may remove or replace it.
    """

    order: CaptureOrder
    directory: Path
    target: Path
    roots: tuple[Root, ...]
    recorder: Recorder
    staging: Staging
    progress: Progress


@dataclass(frozen=True)
class _Before:
    """What was there before the recording."""

    listed: tuple[Listed, ...]
    states: tuple[ProcessState, ...]
    calibration: Calibration | None
    time: TimeState


@dataclass(frozen=True)
class _Done:
    """A recording, with what it was made by."""

    before: _Before
    recording: Recorded
    log_bytes: int
    cut_bytes: int
    rehearsals: UntracedRuns | None = None
    cpu: int | None = None
    flight: FlightState | None = None


def capture(order: CaptureOrder) -> int:
    """Make a trace and return the exit status: the command's, or 0 where a process was attached to.

    Raises:
        ReplayerError: What was asked cannot be meant, or the recording could not be compiled.
        TracerError: The recorder cannot be used here.
    """
    end_at_second()
    before_leaving(close_probes)
    directory = Path.cwd()
    target = Path(os.path.realpath(order.target.parent)) / order.target.name
    roots = check_roots(order.roots)
    for doubt in doubts_of(roots, target):
        say(f"warning: {doubt}")
    staging = make_staging(target, [root.absolute for root in roots])
    before_leaving(lambda: say(f"what was recorded until then is in {staging.folder}"))
    progress = make_progress(order.verbosity, sys.stderr)
    try:
        recorder = choose_recorder(order, staging.folder)
    except BaseException:
        staging.remove()
        raise
    job = _Capture(order, directory, target, roots, recorder, staging, progress)
    if order.flight is not None and isinstance(order.what, Attach):
        return _fly(job, order.what, order.flight)
    try:
        done = _record(job)
    except BaseException:
        _keep_recording(job, ())
        raise
    return _finish(job, done)


def choose_recorder(order: CaptureOrder, folder: Path) -> Recorder:
    """Return what records, with its log in a folder: eBPF where it can be used, if none is named.

    Raises:
        TracerError: It cannot be used here.
    """
    if order.recorder is RecorderChoice.STRACE:
        return StraceRecorder(folder, order.limit_bytes)
    probe = EbpfRecorder(folder, order.limit_bytes, roots=order.roots)
    if order.flight is not None:
        return probe
    is_named = order.recorder is RecorderChoice.EBPF
    if isinstance(order.what, RecordedCommand) and order.what.rehearsals and not is_named:
        why_not = "--rehearse corrects its pauses; those of eBPF need no correction"
    else:
        try:
            probe.check()
        except TracerError as error:
            if is_named:
                hint = f"{error.hint}; or record with --recorder strace"
                raise TracerError(str(error), hint=hint) from None
            why_not = f"{error} ({error.hint})"
        else:
            return probe
    say(f"recording with strace: {why_not}")
    return StraceRecorder(folder, order.limit_bytes)


def _record(job: _Capture) -> _Done:
    what = job.order.what
    if isinstance(what, RecordedCommand):
        return _launch(job, what)
    return _attach(job, what)


def _launch(job: _Capture, what: RecordedCommand) -> _Done:
    check_command(what.command[0])
    job.recorder.check()
    own = read_own_state()
    rehearsals = _run_untraced(job, what)
    with on_one_cpu(rehearsals) as cpu:
        measured = job.recorder.calibrate("command")
        before = _look(job, () if own is None else (own,), measured)
        with Inbox() as inbox:
            recorded = job.recorder.record_command(what.command, inbox, job.progress)
    pid = recorded.first_process or 0
    passed_on = {"pid": pid, "process": pid, "command": what.command}
    states = tuple(state.model_copy(update=passed_on) for state in before.states)
    before = replace(before, states=states)
    return replace(_done(job, before, recorded), rehearsals=rehearsals, cpu=cpu)


def _run_untraced(job: _Capture, what: RecordedCommand) -> UntracedRuns | None:
    if not what.rehearsals:
        return None
    preparation = Preparation(what.preparation, [root.absolute for root in job.roots])
    return run_untraced(what.command, preparation, what.rehearsals, job.progress)


def _attach(job: _Capture, what: Attach) -> _Done:
    check_processes(what.pids)
    measured = job.recorder.calibrate("attached")
    before = _look(job, (), measured)
    with Inbox() as inbox:
        recorded = job.recorder.record_attached(what.pids, inbox, job.progress)
    return _done(job, replace(before, states=recorded.states), recorded)


LIST_S = 60  # chosen: and ten times as long as the list of the begin took, if that is more
CLOCK_NS = 2 * 10**9  # chosen: the clocks of file servers are no better


@dataclass(frozen=True)
class _Begun:
    """The job of a flight recorder, and the list of files from its begin."""

    job: _Capture
    before: _Before
    listed_s: float


def _fly(job: _Capture, what: Attach, order: FlightOrder) -> int:
    """Keep the latest calls, and make traces of them on demand."""
    try:
        check_processes(what.pids)
        roots = [root.absolute for root in job.roots]
        names = views_of(job.roots, read_state(families_of(what.pids))).names
        recording = open_flight(order, names)
        measured = job.recorder.calibrate("attached")
        began_s = time.monotonic()
        begun = _Begun(job, _look(job, (), measured), time.monotonic() - began_s)
        plan = FlightPlan(
            order=order,
            pids=what.pids,
            target=job.target,
            roots=roots,
            names=names,
            compile=lambda dump: _compile_dump(begun, dump),
            way_to_compile=lambda dump: way_to_compile(
                dump.staging, dump.target, _known(job, dump.states), job.recorder.log_format
            ),
        )
        return FlightRecorder(plan, recording, job.progress).fly()
    finally:
        job.staging.remove()


def _compile_dump(begun: _Begun, dump: Dump) -> None:
    """Make a trace of what a flight recorder has written."""
    silent = replace(begun.job.order, verbosity=Verbosity.QUIET)
    job = replace(
        begun.job,
        order=silent,
        target=dump.target,
        staging=dump.staging,
        progress=make_progress(Verbosity.QUIET, sys.stderr),
    )
    remarks: list[str] = []
    listed = _list_again(begun, dump, remarks)
    if dump.flight.is_short:
        asked, kept = (format_about(ns / 1e9) for ns in (dump.flight.asked_ns, dump.flight.kept_ns))
        remarks.append(
            f"the trace covers {kept} and not {asked}: more did not fit into --limit, or was lost"
        )
    recorded = Recorded(
        status=0,
        first_process=None,
        user_ns=None,
        remarks=tuple(remarks),
        states=dump.states,
        tells_open_files=True,
    )
    before = replace(begun.before, listed=listed, states=dump.states, time=dump.began)
    log_bytes = dump.staging.logs[-1].stat().st_size
    _finish(job, _Done(before, recorded, log_bytes, 0, flight=dump.flight))


def _list_again(begun: _Begun, dump: Dump, remarks: list[str]) -> tuple[Listed, ...]:
    """List what has not changed since a trace begins: calls tell of the rest.

    Where the mount does not answer, the list from the begin of the recording stands in for it.
    """
    roots, file = begun.job.roots, dump.staging.folder / "listing.tsv.xz"
    listing = Listing(
        exclude=begun.job.order.exclude,
        tell=lambda _: None,
        unchanged_since_ns=dump.began.wall_ns - CLOCK_NS,
    )
    found: list[tuple[Listed, ...]] = []
    thread = threading.Thread(
        target=lambda: found.append(list_tree(roots, listing, file)), daemon=True, name="listing"
    )
    thread.start()
    thread.join(max(LIST_S, 10 * begun.listed_s))
    if found:
        file.rename(dump.staging.tree)
        return found[0]
    give_up_on("the list of the roots")
    shutil.copyfile(begun.job.staging.tree, dump.staging.tree)
    remarks.append("the roots could not be listed: the files are those of the begin")
    return begun.before.listed


def _done(job: _Capture, before: _Before, recorded: Recorded) -> _Done:
    cut = job.recorder.log.cut()
    return _Done(before, recorded, job.recorder.log.size_bytes, cut)


def _look(
    job: _Capture, states: tuple[ProcessState, ...], calibration: Calibration | None
) -> _Before:
    listing = Listing(
        exclude=job.order.exclude,
        tell=lambda count: job.progress.line(f"listing the roots · {count:,} files"),
    )
    listed = list_tree(job.roots, listing, job.staging.tree)
    job.progress.clear()
    for root, found in zip(job.roots, listed, strict=True):
        _warn_of_gaps(root, found)
    return _Before(listed, states, calibration, read_time())


def _warn_of_gaps(root: Root, found: Listed) -> None:
    if found.unreadable:
        say(f"warning: {found.unreadable:,} entries below {root.absolute} could not be listed")
        for example in found.examples:
            say(f"  {example}")


def _finish(job: _Capture, done: _Done) -> int:
    if done.log_bytes == 0:
        job.staging.remove()
        message = f"{job.target}: not created: no call was recorded"
        raise NothingRecordedError(message, hint="the process made no file call")
    try:
        sidecar, document = _compile(job, done)
    except BaseException:
        if isinstance(job.order.what, RecordedCommand):
            say(f"the command ended with exit status {done.recording.status}")
        _keep_recording(job, done.before.states)
        raise
    job.staging.remove()
    for remark in sidecar.remarks:
        say(f"warning: {remark}")
    say(_summary(job, done, document))
    return done.recording.status


def _compile(job: _Capture, done: _Done) -> tuple[Sidecar, dict[str, Any]]:
    sidecar = _describe(job, done)
    job.staging.sidecar.write_text(sidecar.model_dump_json(indent=1) + "\n", encoding="utf-8")
    roots = [root.absolute for root in job.roots]
    known = () if done.recording.tells_open_files else done.before.states
    write_prelude(job.staging.prelude, known, done.before.time, roots)
    compilation = Compilation(
        known=_known(job, done.before.states),
        note=_note(job.order),
        log_format=job.recorder.log_format,
        raw=job.order.raw,
        calibration=done.before.calibration,
        computed=_computed(job, done),
    )
    return sidecar, compile_trace(job.staging, job.target, compilation, job.progress)


def _keep_recording(job: _Capture, states: tuple[ProcessState, ...]) -> None:
    """Say where a recording is that became no trace; where nothing was recorded, leave nothing."""
    job.progress.clear()
    if not job.staging.holds_recording:
        with suppress(OSError):  # what cannot be reached cannot be removed, either
            job.staging.remove()
        return
    say(f"the recording is kept in {job.staging.folder}; compile it with:")
    say(
        f"  {way_to_compile(job.staging, job.target, _known(job, states), job.recorder.log_format)}"
    )


def _known(job: _Capture, states: tuple[ProcessState, ...]) -> Known:
    is_launch = isinstance(job.order.what, RecordedCommand)
    named = [(None if is_launch else state.pid, state) for state in states]
    umasks = tuple((task, int(state.umask, 8)) for task, state in named if state.umask)
    found = views_of(job.roots, states)
    aliases = tuple(found.aliases.items())
    if is_launch:
        return Known(job.roots, ((None, job.directory),), umasks, aliases)
    directories, views = tuple(found.directories), tuple(found.views)
    return Known(job.roots, directories, umasks, aliases, views, tuple(found.covers))


def _computed(job: _Capture, done: _Done) -> ComputeTime | None:
    if done.recording.user_ns is None or done.cut_bytes:
        return None
    counted = job.recorder.log.count_calls()
    if counted is None:
        return None
    calls, tasks = counted
    runs = done.rehearsals
    if runs is None:
        return {"user_ns": done.recording.user_ns, "calls": calls}
    untraced: Untraced = {"runs": runs.count, "elapsed_ns": runs.median_ns}
    if tasks == 1 and runs.is_alone:  # of several, one may wait while another computes
        untraced["waited_ns"] = runs.waited_ns
    return {"user_ns": runs.computed_ns, "calls": calls, "untraced": untraced}


def _note(order: CaptureOrder) -> str:
    if order.note:
        return order.note
    if isinstance(order.what, RecordedCommand):
        return f"replayer capture of {' '.join(order.what.command)}"
    numbers = ", ".join(map(str, order.what.pids))
    return f"replayer capture of process{'es' if len(order.what.pids) > 1 else ''} {numbers}"


def _describe(job: _Capture, done: _Done) -> Sidecar:
    what, states = job.order.what, done.before.states
    is_launch = isinstance(what, RecordedCommand)
    cut = (f"{done.cut_bytes:,} bytes beyond --limit were cut off",) if done.cut_bytes else ()
    return Sidecar(
        kind="command" if is_launch else "attached",
        command=what.command if isinstance(what, RecordedCommand) else (),
        pid=done.recording.first_process if isinstance(what, RecordedCommand) else what.pids[0],
        pids=() if isinstance(what, RecordedCommand) else what.pids,
        cwd=states[0].cwd if states else "",
        umask=states[0].umask if states else "",
        processes_before=states,
        roots=tuple(map(_root_state, job.roots, done.before.listed)),
        exclude=job.order.exclude,
        recorder=RecorderState(
            name=job.recorder.name,
            path=job.recorder.path,
            version=job.recorder.version,
            words=done.recording.words,
            log_bytes=done.log_bytes,
            cut_bytes=done.cut_bytes,
        ),
        began=done.before.time,
        ended=read_time(),
        exit_status=None if done.recording.is_left or not is_launch else done.recording.status,
        user_ns=done.recording.user_ns,
        rehearsals=done.rehearsals,
        cpu=done.cpu,
        remarks=(*done.recording.remarks, *cut),
        flight=done.flight,
    )


def _root_state(root: Root, listed: Listed) -> RootState:
    return RootState(
        given=root.given,
        absolute=str(root.absolute),
        top=root.top,
        file_system=root.file_system,
        entries=listed.entries,
        excluded=listed.excluded,
        unreadable=listed.unreadable,
        examples=tuple(listed.examples),
        changed=listed.changed,
    )


def _summary(job: _Capture, done: _Done, document: dict[str, Any]) -> str:
    counts = document["counts"]
    if not counts["events"]:
        message, hint = explain_empty(counts)
        return f"warning: {job.target}: {message}\nhint: {hint}"
    events = format_count(counts["events"])
    size = format_bytes(done.log_bytes)
    then = "show it with: replayer show"
    if done.rehearsals is not None:
        then += ", then fit its pauses with: replayer fit"
    name = _NAMES[job.recorder.name]
    return f"{job.target}: {events} events from {size} of log, recorded with {name}; {then}"
