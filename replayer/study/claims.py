"""Whether a row of a study differs from the best: by the rule by which comparisons say so.

Rounds alone keep three of two equal targets apart 1 time in 10; so the interval of the ratio, from
resampled rounds and seconds, must leave out 1 as well.
"""

from collections import Counter
from dataclasses import dataclass

from replayer.analysis import Figure, Resampled, Subject, ratio_interval, resample
from replayer.measure import TargetSummary
from replayer.report.standings import CLAIM_ROUNDS, lie_apart, samples_for_claim
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
class Evidence:
    """What a ranked figure rests on.

    Attributes:
        value: The figure.
        rounds: Its value in each round.
        samples: How many succeeded.
        resampled: What it might have been; None where nothing can be drawn.
    """

    value: float
    rounds: tuple[float, ...]
    samples: int
    resampled: Resampled | None


def find_evidence(
    column: Column, found: Measured, target: TargetSummary, value: float, rounds: tuple[float, ...]
) -> Evidence:
    """Return what the figure of a column rests on, on one target of a step."""
    subject = _subject(column, target)
    distribution = None if subject is None else found.distributions.get(subject)
    if distribution is None or column.figure not in _RESAMPLED:
        return Evidence(value, rounds, 0, None)
    samples = int(distribution.table.sum())
    return Evidence(
        value, rounds, samples, resample(distribution, [_RESAMPLED[column.figure]], seed=0)
    )


def shows_difference(column: Column, own: Evidence, best: Evidence) -> bool | None:
    """Whether what was measured shows a difference; None: too little was measured to tell."""
    percent = _RESAMPLED.get(column.figure)
    needed = samples_for_claim(percent if isinstance(percent, float) else None)
    if min(len(own.rounds), len(best.rounds)) < CLAIM_ROUNDS:
        return None
    if min(own.samples, best.samples) < needed or own.resampled is None or best.resampled is None:
        return None
    # Of a time that is told from a rate the rate is what was drawn.
    parts = (best, own) if column.figure == "time_of_all" else (own, best)
    ratio = parts[0].value / parts[1].value if parts[1].value else 0.0
    interval = ratio_interval(own.resampled, best.resampled, 0, ratio)
    if interval is None:
        return None
    return not interval.low <= 1 <= interval.high and lie_apart(own.rounds, best.rounds)


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
