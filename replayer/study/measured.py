"""What the steps of a study have measured, from their run folders, and what stands out in it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from replayer.analysis.composition import analyse
from replayer.analysis.slots import Distribution, Subject, read_distributions
from replayer.errors import ReplayerError
from replayer.measure import Frozen, Outcome, RunRecord, Summary, load_run, summarise
from replayer.report.description import describe_judgement
from replayer.report.findings import sentences
from replayer.study.journal import Journal
from replayer.study.model import Study
from replayer.verdict.judgement import Verdict, judge


@dataclass(frozen=True)
class Measured:
    """What a step (by its place in the study) has measured, and what that proves."""

    place: int
    record: RunRecord
    summary: Summary
    verdict: Verdict

    @cached_property
    def distributions(self) -> dict[Subject, Distribution]:
        """What is drawn from to tell how sure a figure is."""
        return read_distributions(self.record)


class StepVerdict(Frozen):
    """What a step's run says of its own figures."""

    step: str
    outcome: Outcome
    reasons: tuple[str, ...]
    """Limits that were missed or could not be judged, and what keeps the run from proving any."""


class StandOut(Frozen):
    """Something that makes figures of a step misleading: a cliff, a stall, a drift."""

    step: str
    label: str
    says: str


def load_measured(study: Study, journal: Journal) -> dict[str, Measured]:
    """Return each step that has measured something, by its last attempt that can be read."""
    loaded = ((name, _load(journal, name, place)) for place, name in enumerate(study.steps))
    return {name: found for name, found in loaded if found is not None}


def _load(journal: Journal, step: str, place: int) -> Measured | None:
    for attempt in reversed(journal.state.attempts.get(step, ())):
        with suppress(ReplayerError):
            record = load_run(journal.path / attempt.folder)
            summary = summarise(record)
            return Measured(place, record, summary, judge(record, summary))
    return None


def find_verdicts(steps: Mapping[str, Measured]) -> tuple[StepVerdict, ...]:
    """Return what the run of each step says of its own figures."""
    return tuple(
        StepVerdict(step=name, outcome=found.verdict.outcome, reasons=tuple(_against(found)))
        for name, found in steps.items()
    )


def _against(measured: Measured) -> Iterator[str]:
    targets = len(measured.summary.targets)
    for judgement in measured.verdict.judgements:
        if judgement.outcome != "pass":
            yield describe_judgement(judgement, targets)
    yield from measured.verdict.reasons


def find_stand_outs(steps: Mapping[str, Measured]) -> tuple[StandOut, ...]:
    """Return what stands out in the steps and makes their figures misleading."""
    return tuple(found for name, measured in steps.items() for found in _stand_outs(name, measured))


def _stand_outs(step: str, measured: Measured) -> Iterator[StandOut]:
    for part in measured.record.run.plan.parts:
        share = f"{part.percent} % of the directories of {part.dataset}"
        says = f"{share}: a time of it is not that of the whole"
        yield StandOut(step=step, label="a part only", says=says)
    for found in sentences(analyse(measured.record, measured.summary)):
        if found.weight == "alarm":
            yield StandOut(step=step, label=found.label, says=found.text)
