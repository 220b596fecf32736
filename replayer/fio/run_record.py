"""The run folder of a baseline: what is written at its begin and at its end."""

import sys
from collections.abc import Sequence
from typing import Literal

from replayer.errors import ReplayerError
from replayer.fio import JobFile, Program, depth, processes_at_once, seconds_needed
from replayer.fio.jobs import document_of, fingerprint_of
from replayer.fio.order import BaselineOrder
from replayer.fio.promises import warnings_of
from replayer.measure import (
    CacheFacts,
    Health,
    LoadFacts,
    PlanFacts,
    Run,
    RunFolder,
    RunWarning,
    StatedThreshold,
    Target,
    collect_machine,
    finish,
    this_process,
    utc_text,
)
from replayer.run import marker
from replayer.verdict import with_default

__all__ = ["BaselineRecord", "marker_note"]

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


class BaselineRecord:
    """Writes run.json and plan.json, and appends events.

    Attributes:
        run: What is told of the run by now; None before it began.
    """

    def __init__(self, folder: RunFolder, order: BaselineOrder, program: Program) -> None:
        self.folder = folder
        self._order = order
        self._program = program
        self.run: Run | None = None

    def begin(self, files: tuple[JobFile, ...], targets: tuple[Target, ...], rounds: int) -> None:
        """Write what is known before anything runs."""
        self.folder.write_plan(document_of(files, self._program.version))
        self.run = Run(
            id=self.folder.id,
            command=tuple(sys.argv),
            began=utc_text(),
            process=this_process(),
            machine=collect_machine(),
            plan=PlanFacts(
                name=name_of(files),
                fingerprint=fingerprint_of(files),
                seed=self._order.seed,
                scenario=f"fio {self._program.version}: {name_of(files)}",
            ),
            load=_load_facts(files, rounds),
            cache=CacheFacts(asked="as-is", procedure=_CACHE),
            targets=targets,
            thresholds=tuple(
                StatedThreshold(text=text, source=source)
                for text, source in with_default(
                    (text, "--threshold") for text in self._order.thresholds
                )
            ),
            warnings=tuple(warnings_of(files, targets)),
        )
        self.folder.write_run(self.run)

    def end(
        self,
        status: Literal["finished", "interrupted", "failed"],
        health: Health | None,
        failure: ReplayerError | None,
        extra: Sequence[RunWarning] = (),
    ) -> ReplayerError | None:
        """Write how it went; return what refused to take it."""
        if self.run is None:
            return None
        ended = finish(self.run, status, health=health, failure=failure, extra=extra)
        self.run, refused = self.folder.write_end(ended)
        return refused


def _load_facts(files: Sequence[JobFile], rounds: int) -> LoadFacts:
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
