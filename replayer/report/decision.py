"""When a run of several targets has decided: it goes on in rounds, and is looked at now and then.

Who looks often finds a difference by chance. So the looks are fixed before the start, and each has
an equal share of the 5 % (the union bound, which holds however looks depend on each other; Lan and
DeMets 1983, 'Discrete sequential boundaries for clinical trials', on spending an error rate). Pure:
rankings in, what is still open out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import ceil, log

from replayer.analysis.resampling import student_quantile
from replayer.measure.run import Run
from replayer.measure.units import format_about, format_many, format_share
from replayer.report.claims import samples_to_claim
from replayer.report.document import ComparedFigure, ComparisonRow, Unranked
from replayer.report.ranking import FIGURES, RunRanking
from replayer.verdict.threshold import Threshold, parse_threshold

PRECISION = 0.1
"""Chosen: who picks a mount seldom cares for a difference of less than a tenth."""
_TOLD = ("p50", "p95")
_PERCENTS = {figure.name: figure.percent for figure in FIGURES}


@dataclass(frozen=True)
class OpenFigure:
    """A figure that is not decided."""

    what: str
    """Such as ``p95``, or ``login p95`` where transactions are not pooled."""
    width: float | None
    """By what share its ratio may be off; None: there is no interval yet."""
    rounds: int | None
    """How many would decide it, as far as these tell; None: that is not known."""


def plan_looks(most: int) -> tuple[int, ...]:
    """Return after which rounds of at most so many a run is looked at: at the last one, too.

    At 3, 4, 6, 8, 12, 16, 24 …: each time a third or a half more has been measured.
    """
    series = (base << power for power in count() for base in (3, 4))
    return (*takewhile(lambda rounds: rounds < most, series), most)


def find_open(
    ranking: RunRanking, thresholds: Sequence[Threshold], precision: float, rounds: int
) -> OpenFigure | None:
    """Return what takes longest to decide of a run of so many rounds; None: all is decided.

    Decided is each ratio that differs from 1, or whose interval is narrower than the precision. A
    target on which nothing has succeeded is not waited for.
    """
    found = [*_open_figures(ranking, thresholds, precision, rounds)]
    return max(found, key=lambda each: each.rounds or 0, default=None)


def find_open_in(run: Run, rankings: Sequence[RunRanking], rounds: int) -> OpenFigure | None:
    """Return what takes longest to decide of a run until now, in any of its rankings."""
    until = run.load.until
    if until is None:
        return None
    thresholds = [parse_threshold(each.text, each.source) for each in run.thresholds]
    found = [find_open(ranking, thresholds, until.precision, rounds) for ranking in rankings]
    known = [each for each in found if each is not None]
    return max(known, key=lambda each: each.rounds or 0, default=None)


def say_ended(run: Run, rankings: Sequence[RunRanking], *, proves: bool) -> str | None:
    """Say why a run has ended that goes on until it has decided; ``proves`` something, or not."""
    load, until = run.load, run.load.until
    if until is None or run.status != "finished":
        return None
    found = find_open_in(run, rankings, load.rounds)
    if found is None:
        decided = ": decided" if proves else ""
        return f"stopped after {format_many(load.rounds, 'round')}{decided}"
    budget = f"the budget of {format_about(until.budget_s)} is spent"
    if found.width is None:
        return f"{budget}: too little was measured to compare {found.what}"
    enough = ""
    if found.rounds is not None and found.rounds <= _MOST * load.rounds:
        enough = f"; --budget {_option(until.budget_s * found.rounds / load.rounds)} would do"
    known = f"\N{PLUS-MINUS SIGN}{format_share(found.width)}"
    return f"{budget}: {found.what} is known to {known} only{enough}"


_MOST = 100  # chosen: nobody waits for a hundred times as long


def _option(seconds: float) -> str:
    """Return a time as the option takes it, rounded up."""
    return f"{ceil(seconds)}s" if seconds < 2 * _MINUTE_S else f"{ceil(seconds / _MINUTE_S)}m"


_MINUTE_S = 60


def _open_figures(
    ranking: RunRanking, thresholds: Sequence[Threshold], precision: float, rounds: int
) -> Iterator[OpenFigure]:
    chosen = {
        (each.subject.name if each.subject else None, _figure_of(each)) for each in thresholds
    }
    pooled = bool(ranking.pooled)

    def decides(each: ComparedFigure | Unranked) -> bool:
        general = each.kind == "all transactions" if pooled else each.kind == "transaction"
        if general and (each.figure in _TOLD or (None, each.figure) in chosen):
            return True
        return (each.subject, each.figure) in chosen

    for figure in filter(decides, ranking.figures):
        what = figure.figure if pooled else f"{figure.subject} {figure.figure}"
        rows = [row for row in figure.standings if not _is_decided(row, precision)]
        if rows:
            worst = max(rows, key=_width)
            needed = [_rounds_needed(row, precision, rounds) for row in rows]
            known = [each for each in needed if each is not None]
            yield OpenFigure(what, _width(worst) or None, max(known, default=None))
    for lacking in filter(decides, ranking.unranked):
        fewest = min(each.samples for each in lacking.lacking)
        if fewest:
            wanted = samples_to_claim(_PERCENTS[lacking.figure])
            yield OpenFigure(lacking.figure, None, ceil(rounds * wanted / fewest))


def _figure_of(threshold: Threshold) -> str | None:
    """Return the ranked figure that a threshold limits, if there is one."""
    metric = threshold.metric
    if metric.kind == "throughput":
        return "throughput"
    if metric.kind != "percentile" or metric.part != "latency":
        return None
    if threshold.subject is not None and threshold.subject.op is not None:
        return None
    return next((name for name, each in _PERCENTS.items() if each == metric.percent), None)


def _is_decided(row: ComparisonRow, precision: float) -> bool:
    if row.claim in {"best", "differs", "no ratio to 0"}:
        return True
    return row.ratio_low is not None and _width(row) <= precision


def _width(row: ComparisonRow) -> float:
    """Return by what share a ratio may be off; 0: there is no interval."""
    if not (row.ratio and row.ratio_low and row.ratio_high):
        return 0.0
    return max(row.ratio_high / row.ratio, row.ratio / row.ratio_low) - 1


def _rounds_needed(row: ComparisonRow, precision: float, rounds: int) -> int | None:
    """Return how many rounds decide a ratio.

    Its interval shrinks with the root of their number, and as Student's t does with more of them.
    """
    width = _width(row)
    if not width or not row.ratio:
        return None
    wanted = max(log(1 + precision), abs(log(row.ratio)))
    plain = needed = rounds * (log(1 + width) / wanted) ** 2
    for _ in range(_STEPS):
        needed = plain * (_quantile(ceil(needed)) / _quantile(rounds)) ** 2
    return max(ceil(needed), rounds + 1)


_STEPS = 4  # chosen: then it hardly changes


def _quantile(rounds: int) -> float:
    """Return about how many standard errors wide an interval of several looks is."""
    return student_quantile(0.01, min(max(rounds - 1, 1), 100))
