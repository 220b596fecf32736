"""Everything that is searched for in one run, and which searches had too few data.

Each search has a least number of intervals or samples and finds nothing below it. The report says
so; otherwise a reader would take the silence for a finding.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from replayer.analysis import drift, steps, works
from replayer.analysis.acknowledgement import find_acknowledged
from replayer.analysis.drift import find_first_touches
from replayer.analysis.finding import Analysis, Modes, Unfinished
from replayer.analysis.silence import find_silences
from replayer.analysis.slots import IntervalSeries, chart_series, leading
from replayer.analysis.steps import find_changes, worth
from replayer.analysis.works import find_modes
from replayer.measure.hlog import CANCELLED
from replayer.measure.record import RunRecord
from replayer.measure.summary import Performance, Statistics, Summary, TransactionSummary

MOST_NAMED = 4  # chosen: of subjects in one sentence

_OVER_ALL = (("cliffs and other steps", steps.FEWEST), ("drift", drift.SHORTEST))
_IN_A_ROUND = (("slow begins", drift.FEWEST_LATER + 1),)
_SAMPLED = (
    ("two groups of times", 2 * works.LEAST_SAMPLES),
    ("outliers and what made the slowest slow", works.FEWEST),
)


def _find_shortages(record: RunRecord, series: Sequence[IntervalSeries]) -> Iterator[str]:
    """Yield a sentence for each number of data that searches need and subjects do not have."""
    names = {target.index: target.name for target in record.run.targets}
    subjects = {_name(one, names): one for one in leading(series) if one.counts.size}
    if not subjects:
        yield "not enough data to look for anything: nothing was measured"
        return
    intervals = {name: one.counts.size for name, one in subjects.items()}
    longest = {name: int(np.bincount(one.rounds).max()) for name, one in subjects.items()}
    samples = {name: int(one.counts.sum()) for name, one in subjects.items()}
    yield from _sentences(_OVER_ALL, intervals, "intervals with samples")
    yield from _sentences(_IN_A_ROUND, longest, "intervals in a round")
    yield from _sentences(_SAMPLED, samples, "samples")


def _name(series: IntervalSeries, names: Mapping[int, str]) -> str:
    target = names[series.target]
    return series.subject if len(names) == 1 else f"{series.subject} on {target}"


def _sentences(
    searches: Sequence[tuple[str, int]], counts: Mapping[str, int], unit: str
) -> Iterator[str]:
    """Yield a sentence for each set of subjects that lack data, with the searches it is for."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for search, needed in searches:
        short = tuple(name for name, count in counts.items() if count < needed)
        if short:
            lacking.setdefault(short, []).append(f"{search} ({needed} {unit})")
    for short, what in lacking.items():
        named = ", ".join(f"{name} has {counts[name]:,}" for name in short[:MOST_NAMED])
        more = f" and {len(short) - MOST_NAMED} more have too few" * (len(short) > MOST_NAMED)
        yield f"not enough data to look for {', '.join(what)}: {named}{more}"


MOST = 24  # findings of a kind: chosen, beyond that nobody reads


def analyse(record: RunRecord, summary: Summary) -> Analysis:
    """Look for everything in a run."""
    series = chart_series(record)
    steps, drifts = find_changes(record, series)
    touches = find_first_touches(record, tuple(worth(series)))
    found = tuple(works.find_works(record))
    # A step makes two groups by itself.
    stepped = {(step.target, name) for step in steps for name in (step.subject, *step.ops)}
    return Analysis(
        steps=_most(steps),
        drifts=_most(drifts),
        silences=_most(find_silences(record)),
        modes=_most(each for each in find_modes(found) if stepped.isdisjoint(_names(each))),
        first_touches=_most(touches),
        outliers=_most(works.find_outliers(found)),
        tails=_most(works.find_tails(record, found)),
        between=_most(works.find_between(record, found)),
        unfinished=_most(_find_unfinished(summary)),
        acknowledged=tuple(find_acknowledged(record, summary)),
        notes=tuple(_find_shortages(record, series)),
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
