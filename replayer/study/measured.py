"""What the steps of a study have measured, from their run folders, and what stands out in it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from replayer.analysis import analyse
from replayer.errors import ReplayerError
from replayer.measure import Frozen, RunRecord, Summary, load_run, summarise
from replayer.report import sentences
from replayer.study.journal import Journal
from replayer.study.model import Study

__all__ = ["Measured", "StandOut", "find_stand_outs", "load_measured"]


@dataclass(frozen=True)
class Measured:
    """What a step has measured."""

    record: RunRecord
    summary: Summary


class StandOut(Frozen):
    """Something that makes figures of a step misleading: a cliff, a stall, a drift."""

    step: str
    label: str
    says: str


def load_measured(study: Study, journal: Journal) -> Iterator[tuple[str, Measured]]:
    """Yield each step that has measured something, with its last attempt that can be read."""
    for name in study.steps:
        attempts = journal.state.attempts.get(name, ())
        for attempt in reversed(attempts):
            with suppress(ReplayerError):
                record = load_run(journal.path / attempt.folder)
                yield name, Measured(record, summarise(record))
                break


def find_stand_outs(study: Study, journal: Journal) -> tuple[StandOut, ...]:
    """Return what stands out in the steps and makes their figures misleading."""
    return tuple(
        found
        for name, measured in load_measured(study, journal)
        for found in (*_parts(name, measured), *_alarms(name, measured))
    )


def _parts(step: str, measured: Measured) -> Iterator[StandOut]:
    for part in measured.record.run.plan.parts:
        share = f"{part.percent} % of the directories of {part.dataset}"
        says = f"{share}: a time of it is not that of the whole"
        yield StandOut(step=step, label="a part only", says=says)


def _alarms(step: str, measured: Measured) -> Iterator[StandOut]:
    for found in sentences(analyse(measured.record, measured.summary)):
        if found.weight == "alarm":
            yield StandOut(step=step, label=found.label, says=found.text)
