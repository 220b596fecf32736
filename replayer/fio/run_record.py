"""What run.json says of a baseline."""

import sys
from collections.abc import Sequence

from replayer.fio import JobFile, Program, depth, processes_at_once, seconds_needed
from replayer.fio.jobs import fingerprint_of
from replayer.fio.order import BaselineOrder
from replayer.fio.promises import warnings_of
from replayer.measure import (
    CacheFacts,
    LoadFacts,
    PlanFacts,
    Target,
    collect_machine,
)
from replayer.run import marker
from replayer.run.writer import RunFacts
from replayer.verdict.threshold import with_default

__all__ = ["baseline_facts", "describe_load", "marker_note", "name_of"]

_CACHE = (
    "fio's own: each job lays its files out anew, and drops their pages from this client's cache "
    "before it begins (invalidate=1) unless its file says otherwise"
)


def marker_note(run: str, files: Sequence[JobFile]) -> str:
    """Return what the marker file of a run's folder says: whose it is, and how to find it alive."""
    return marker.marker_note(run, fingerprint_of(files), name_of(files))


def name_of(files: Sequence[JobFile]) -> str:
    """Return what a baseline is called: the job files."""
    return " ".join(file.source for file in files)


def baseline_facts(
    order: BaselineOrder,
    program: Program,
    files: tuple[JobFile, ...],
    targets: tuple[Target, ...],
    load: LoadFacts,
) -> RunFacts:
    """Return what is known of a baseline before anything runs."""
    return RunFacts(
        command=tuple(sys.argv),
        machine=collect_machine(),
        plan=PlanFacts(
            name=name_of(files),
            fingerprint=fingerprint_of(files),
            seed=order.seed,
            scenario=f"fio {program.version}: {name_of(files)}",
        ),
        load=load,
        cache=CacheFacts(asked="as-is", procedure=_CACHE),
        targets=targets,
        thresholds=with_default((text, "--threshold") for text in order.thresholds),
        warnings=tuple(warnings_of(files, targets)),
    )


def describe_load(files: Sequence[JobFile], rounds: int) -> LoadFacts:
    """Return how the jobs make their load."""
    sections = [section for file in files for section in file.sections]
    each = [seconds_needed(file) for file in files]
    known = [seconds for seconds in each if seconds is not None]
    depths = sorted({depth(section) for section in sections})
    shown = " to ".join(dict.fromkeys(map(str, (depths[0], depths[-1]))))
    return LoadFacts(
        users=max(map(processes_at_once, files)),
        loop="closed",
        pace=f"fio, {shown} I/Os under way in each process, the next as soon as one has ended",
        rounds=rounds,
        duration_s=sum(known) * rounds if len(known) == len(each) else None,
        transactions_per_user=None,
        warm_up_s=0.0,
        ramp_up_s=0.0,
        order="in turn",
    )
