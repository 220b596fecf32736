"""Everything that is looked for in one run, one after another, and what could not be looked for."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from replayer.analysis.acknowledgement import find_acknowledged
from replayer.analysis.attribution import find_outliers, find_tails
from replayer.analysis.beginnings import find_first_touches
from replayer.analysis.between import find_between
from replayer.analysis.changes import find_changes, worth
from replayer.analysis.finding import Analysis, Modes, Unfinished
from replayer.analysis.grouping import find_modes
from replayer.analysis.series import CANCELLED, chart_series
from replayer.analysis.shortage import find_shortages
from replayer.analysis.silence import find_silences
from replayer.analysis.works import find_works
from replayer.measure import (
    Performance,
    RunRecord,
    Statistics,
    Summary,
    TransactionSummary,
)

__all__ = ["analyse"]

MOST = 24  # findings of a kind: chosen, beyond that nobody reads


def analyse(record: RunRecord, summary: Summary) -> Analysis:
    """Look for everything in a run."""
    series = chart_series(record)
    steps, drifts = find_changes(record, series)
    touches = find_first_touches(record, tuple(worth(series)))
    works = tuple(find_works(record))
    # A step makes two groups by itself.
    stepped = {(step.target, name) for step in steps for name in (step.subject, *step.ops)}
    return Analysis(
        steps=_most(steps),
        drifts=_most(drifts),
        silences=_most(find_silences(record)),
        modes=_most(found for found in find_modes(works) if stepped.isdisjoint(_names(found))),
        first_touches=_most(touches),
        outliers=_most(find_outliers(works)),
        tails=_most(find_tails(record, works)),
        between=_most(find_between(record, works)),
        unfinished=_most(_find_unfinished(summary)),
        acknowledged=tuple(find_acknowledged(record, summary)),
        notes=tuple(find_shortages(record, series)),
    )


def _find_unfinished(summary: Summary) -> Iterator[Unfinished]:
    """Yield what had not ended with its turn and had lasted longer than the tail of what ended."""
    for target in summary.targets:
        for entry in target.overall.transactions:
            yield from _outlasting(target.name, entry.name, entry.latency, entry)
        for op in target.overall.outside:
            yield from _outlasting(target.name, op.op, op.time, op)


def _outlasting(
    target: str, subject: str, times: Statistics, entry: TransactionSummary | Performance
) -> Iterator[Unfinished]:
    cut = [found for found in entry.outcomes if found.outcome == CANCELLED]
    ended = (found for found in entry.outcomes if found.expected and found.count)
    ended_max_ns = max((found.max_ns for found in ended if found not in cut), default=None)
    tail_ns = times.p99_ns or ended_max_ns or 0
    if times.unfinished_ns is not None and times.unfinished_ns > tail_ns:
        yield Unfinished(
            target=target,
            subject=subject,
            kind="transaction" if isinstance(entry, TransactionSummary) else "op",
            count=sum(found.count for found in cut),
            oldest_ns=times.unfinished_ns,
            ended_max_ns=ended_max_ns,
        )


def _names(found: Modes) -> Iterator[tuple[str, str]]:
    """Yield the names under which a step may be known that made these groups."""
    yield found.target, found.subject
    if found.transaction is not None:
        yield found.target, found.transaction
        yield found.target, f"{found.transaction}/{found.subject}"


_Found = TypeVar("_Found")


def _most(found: Iterable[_Found]) -> tuple[_Found, ...]:
    return tuple(found)[:MOST]
