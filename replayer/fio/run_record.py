"""What a baseline was asked to do, and what run.json says of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replayer.fio.amounts import depth, processes_at_once, seconds_needed
from replayer.fio.jobfile import JobFile
from replayer.fio.jobs import fingerprint_of
from replayer.fio.program import Program
from replayer.fio.promises import warnings_of
from replayer.measure.facts import collect_machine
from replayer.measure.health import LoadFacts
from replayer.measure.run import CacheFacts, PlanFacts, Run, Target, this_process, utc_text
from replayer.report.forms import ReportFiles
from replayer.run.marker import marker_note
from replayer.run.options import DEFAULT_STOP_TIMEOUT_S, Results
from replayer.run.schedule import default_rounds
from replayer.run.writer import state_thresholds
from replayer.verdict.threshold import with_default


@dataclass(frozen=True)
class Size:
    """How large a job's files are made: so many bytes, or a share of the free space."""

    size_bytes: int | None
    """Of each process; None where it is a share."""
    share: float | None
    """Of the free space of the fullest target, for all processes of a job together."""


@dataclass(frozen=True)
class BaselineOrder:
    """The order."""

    jobs: tuple[str, ...]
    targets: tuple[str, ...]
    """``[NAME=]PATH`` each."""
    devices: tuple[str, ...] = ()
    """``[NAME=]/dev/…`` each."""
    expendable: tuple[str, ...] = ()
    """Devices whose data may be overwritten, exactly as in ``devices``."""
    size: Size | None = None
    """None is left to the job files."""
    runtime_s: float | None = None
    """Of each job in each round; None is left to the job files."""
    stop_timeout_s: float = float(DEFAULT_STOP_TIMEOUT_S)
    """How long fio may take to end after it was asked to, before it is killed."""
    rounds: int | None = None
    """Turns of each target; None means one for one target, three for several."""
    seed: int = 1
    output: Path | None = None
    thresholds: tuple[str, ...] = ()
    results: Results = "screen"
    files: ReportFiles = field(default_factory=ReportFiles)
    quiet: bool = False
    asks: bool = False
    """Whether a person is there who can be asked."""


_CACHE = (
    "by fio: each job lays out its files again and drops their pages from the client's cache "
    "first (invalidate=1), unless its file differs"
)


def note_of_jobs(run: str, files: Sequence[JobFile]) -> str:
    """Return what the marker file of a run's folder says: whose it is, and how to find it alive."""
    return marker_note(run, fingerprint_of(files), name_of(files))


def name_of(files: Sequence[JobFile]) -> str:
    """Return what a baseline is called: the job files."""
    return " ".join(file.source for file in files)


def describe_baseline(
    name: str,
    order: BaselineOrder,
    program: Program,
    files: tuple[JobFile, ...],
    targets: tuple[Target, ...],
) -> Run:
    """Return what is known of a baseline before anything runs."""
    return Run(
        id=name,
        command=tuple(sys.argv),
        began=utc_text(),
        process=this_process(),
        machine=collect_machine(),
        plan=PlanFacts(
            name=name_of(files),
            fingerprint=fingerprint_of(files),
            seed=order.seed,
            scenario=f"fio {program.version}: {name_of(files)}",
        ),
        load=_describe_load(files, order.rounds or default_rounds(len(targets))),
        cache=CacheFacts(asked="as-is", procedure=_CACHE),
        targets=targets,
        thresholds=state_thresholds(
            with_default((text, "--threshold") for text in order.thresholds)
        ),
        warnings=tuple(warnings_of(files, targets)),
    )


def _describe_load(files: Sequence[JobFile], rounds: int) -> LoadFacts:
    sections = [section for file in files for section in file.sections]
    each = [seconds_needed(file) for file in files]
    known = [seconds for seconds in each if seconds is not None]
    depths = sorted({depth(section) for section in sections})
    shown = " to ".join(dict.fromkeys(map(str, (depths[0], depths[-1]))))
    return LoadFacts(
        users=max(map(processes_at_once, files)),
        loop="closed",
        pace=f"fio, {shown} I/Os in flight in each process, the next when one completes",
        rounds=rounds,
        duration_s=sum(known) * rounds if len(known) == len(each) else None,
        transactions_per_user=None,
        warm_up_s=0.0,
        ramp_up_s=0.0,
        order="in turn",
    )
