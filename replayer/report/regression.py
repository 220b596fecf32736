"""Whether a run is slower than one that was kept: each target against the one of the same name.

The medians and the slow ones (p95) of all transactions are compared by the ratio and its interval,
as in comparisons. A figure fails where all of the interval lies above the tolerance, and passes
where all of it lies below; else the runs are too short or too noisy to tell.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replayer.errors import ReplayerError
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import Baseline, BaselineFigure, Outcome, Target
from replayer.measure.summarise import summarise
from replayer.report.claims import CLAIM_ROUNDS, FEW_ROUNDS_MARGIN
from replayer.report.document import ComparedFigure
from replayer.report.plan_changes import NONE_BESIDE, beside, work_in, work_of
from replayer.report.ranking import Side, entrants_of, rank_entrants, ratio_between
from replayer.verdict.judgement import judge

_FIGURES = frozenset({"p50", "p95"})
_AFTER, _BEFORE = "this run", "the kept run"
TOLERANCE = 0.1
"""Chosen: medians of equal runs on a shared mount differ by less, in the runs of a day."""


@dataclass(frozen=True)
class KeptRun:
    """What a run is held against."""

    name: str
    """As it was given."""
    path: Path
    """Its folder: ``latest`` is another one once this run has begun."""
    tolerance: float = TOLERANCE
    """By what share of its time a figure may be slower."""


def check_kept_run(
    kept: KeptRun, plan: Mapping[str, Any], targets: tuple[str, ...], neighbour: str = NONE_BESIDE
) -> None:
    """Refuse a run that a plan (plan.json) cannot be held against, before anything is made.

    Raises:
        ReplayerError: It cannot be read, did other work, proves nothing, or has other targets.
    """
    record = load_run(kept.path)
    where = f"--baseline {kept.name}"
    if work_in(plan) != work_of(record):
        message = f"{where}: {record.folder.name} ran {record.run.plan.name} with other work"
        hint = "use the same scenario, -u, --seed and --set, or keep a run of this work"
        raise ReplayerError(message, hint=hint)
    if beside(record) != neighbour:
        message = f"{where}: {record.folder.name} had {beside(record)} beside it, not {neighbour}"
        raise ReplayerError(message, hint="give the same --neighbour, or keep a run with this one")
    verdict = judge(record, summarise(record))
    if verdict.reasons:
        message = f"{where}: {record.folder.name} is {verdict.outcome}: {verdict.reasons[0]}"
        raise ReplayerError(message, hint="keep a run that proves its figures")
    if not any(_pairs(record, targets)):
        names = ", ".join(target.name for target in record.run.targets)
        message = f"{where}: no target of {record.folder.name} ({names}) is one of this run"
        raise ReplayerError(message, hint="give targets the same names: --target NAME=PATH")


def _pairs(record: RunRecord, targets: tuple[str, ...]) -> Iterator[tuple[str, Target]]:
    """Yield each target with the kept run's; the only ones of both runs are a pair, too."""
    if len(targets) == len(record.run.targets) == 1:
        yield targets[0], record.run.targets[0]
        return
    known = {target.name: target for target in record.run.targets}
    yield from ((name, known[name]) for name in targets if name in known)


def judged_against(record: RunRecord, kept: KeptRun) -> RunRecord:
    """Return the record of a run with how it stands to the kept one.

    Raises:
        ReplayerError: The kept run cannot be read any more.
    """
    before = load_run(kept.path)
    baseline = Baseline(
        name=kept.name,
        run=before.run.id,
        folder=str(before.folder.absolute()),
        tolerance=kept.tolerance,
        figures=tuple(_figures(record, before, kept.tolerance)),
    )
    return replace(record, run=record.run.model_copy(update={"baseline": baseline}))


def _figures(after: RunRecord, before: RunRecord, tolerance: float) -> Iterator[BaselineFigure]:
    summaries = {id(record): summarise(record) for record in (after, before)}
    own = {target.name: target for target in after.run.targets}
    for name, target in _pairs(before, tuple(own)):
        sides = [Side(_AFTER, after, own[name]), Side(_BEFORE, before, target)]
        ranking = rank_entrants(entrants_of(sides, summaries))
        told = [each for each in ranking.figures if each.figure in _FIGURES and each.kind != "op"]
        whole = [each for each in told if each.kind == "all transactions"]
        rounds = min(
            len(summaries[id(side.record)].targets[side.target.index].rounds) for side in sides
        )
        for figure in whole or told:
            yield _judge(name, figure, tolerance, rounds)


def _judge(target: str, figure: ComparedFigure, tolerance: float, rounds: int) -> BaselineFigure:
    rows = {row.label: row for row in figure.standings}
    ratio, low, high = ratio_between(figure, _AFTER, _BEFORE)
    if rounds < CLAIM_ROUNDS and low and high:  # they hardly show how much rounds differ
        low, high = low / FEW_ROUNDS_MARGIN, high * FEW_ROUNDS_MARGIN
    return BaselineFigure(
        target=target,
        what=figure.subject,
        figure=figure.figure,
        before_ns=rows[_BEFORE].value,
        after_ns=rows[_AFTER].value,
        ratio=ratio,
        low=low,
        high=high,
        outcome=_outcome(low, high, 1 + tolerance),
    )


def _outcome(low: float | None, high: float | None, most: float) -> Outcome:
    if low is None or high is None:
        return "inconclusive"
    return "fail" if low > most else "pass" if high <= most else "inconclusive"
