"""Whether a row of a study differs from the best: by the rule by which comparisons say so.

Rounds alone keep three of two equal targets apart 1 time in 10; so the interval of the ratio, from
resampled rounds and seconds, must leave out 1 as well.
"""

from collections import Counter
from dataclasses import dataclass

from replayer.analysis import Figure, Subject, resample
from replayer.measure import TargetSummary
from replayer.report.claims import CLAIM_ROUNDS, Evidence, judge
from replayer.study.measured import Measured
from replayer.study.model import Column

__all__ = ["Evidence", "find_evidence", "shows_difference"]

_RESAMPLED: dict[str, Figure] = {
    "rate": None,
    "throughput": None,
    "bytes_per_s": None,  # of one kind of I/O, whose sizes are those of the job
    "time_of_all": None,
    "mean": "mean",
    "p50": 50.0,
    "p95": 95.0,
    "p99": 99.0,
}


@dataclass(frozen=True, eq=False)
class Ranked:
    """A figure that rows are ranked by, and what it rests on."""

    value: float
    evidence: Evidence


def find_evidence(
    column: Column, found: Measured, target: TargetSummary, rounds: tuple[float, ...]
) -> Evidence:
    """Return what the figure of a column rests on, on one target of a step."""
    subject = _subject(column, target)
    distribution = None if subject is None else found.distributions.get(subject)
    if distribution is None or column.figure not in _RESAMPLED:
        return Evidence(rounds, 0, None)
    samples = int(distribution.table.sum())
    # Rows of several steps do not share rounds: these stood side by side in one run alone.
    drawn = resample(distribution, [_RESAMPLED[column.figure]], found.place)
    return Evidence(rounds, samples, drawn)


def shows_difference(column: Column, own: Ranked, best: Ranked, rows: int) -> bool | None:
    """Whether what was measured shows a difference; None: too little was measured to tell.

    Args:
        column: What the rows are ranked by.
        own: One row.
        best: The best of the user's.
        rows: How many of the user's have it.
    """
    if min(len(each.evidence.rounds) for each in (own, best)) < CLAIM_ROUNDS:
        return None
    # Of a time that is told from a rate the rate is what was drawn.
    over, under = (best, own) if column.figure == "time_of_all" else (own, best)
    ratio = over.value / under.value if under.value else 0.0
    figure = _RESAMPLED.get(column.figure)
    percent = figure if isinstance(figure, float) else None
    claim, _ = judge(own.evidence, best.evidence, percent, ratio, rows)
    return {"differs": True, "no difference shown": False}.get(claim)


def _subject(column: Column, target: TargetSummary) -> Subject | None:
    """Return what a column is drawn from; None: an op that several transactions make."""
    transactions = target.overall.transactions
    if column.of is None:
        most = max(transactions, key=lambda item: item.count, default=None)
        return None if most is None else (target.index, "transaction", most.name)
    name, _, op = column.of.partition("/")
    if not op:
        return (target.index, "transaction", name)
    makers = Counter(each.op for found in transactions for each in found.ops)
    return (target.index, "op", op) if makers[op] == 1 else None
