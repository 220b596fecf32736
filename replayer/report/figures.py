"""The figures of a run as rows of text: what the table, the Markdown and the terminal show alike.

One row per transaction, then one per op of it. A figure that there is none of is a dash.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replayer.measure.health import LoadFacts
from replayer.measure.hlog import FOUND_END
from replayer.measure.pacing import late_share
from replayer.measure.summary import (
    Performance,
    RoundSummary,
    Statistics,
    TargetSummary,
    TransactionSummary,
)
from replayer.measure.units import (
    DASH,
    format_at_least_ns,
    format_bytes,
    format_count,
    format_rate,
    format_time_ns,
    format_times,
)
from replayer.report.document import ComparedFigure, ComparisonRow
from replayer.report.style import Column

COLUMNS = (
    Column("", 9),
    Column("count", 6),
    Column("errors", 8),
    Column("rate", 7),
    Column("bytes/s", 2),
    Column("mean", 1),
    Column("p50", 7),
    Column("p95", 9),
    Column("p99", 8),
    Column("p99.9", 3),
    Column("max", 5),
)
"""What goes first on a narrow terminal is chosen: mean, bytes/s and p99.9."""

SHOWN_SHARE = 0.05
"""Lag of closed loops from which on it is shown (chosen: below it a latency is the service)."""
ERROR_TITLES = ("where", "target", "outcome", "count", "mean", "max")
NO_TRANSACTION = "no transaction"
"""What calls outside of transactions are listed under."""


@dataclass(frozen=True)
class FigureRow:
    """A row: its name, how deep it is under another, and its cells."""

    name: str
    depth: int
    cells: tuple[str, ...]


def figure_rows(part: RoundSummary, load: LoadFacts) -> Iterator[FigureRow]:
    """Yield the rows of a target: each transaction with its ops; calls outside of any come last."""
    for transaction in part.transactions:
        yield FigureRow(transaction.name, 0, _cells(transaction, transaction.latency))
        if load.loop != "closed" or late_share(load, transaction) > SHOWN_SHARE:
            yield FigureRow("waiting to start", 1, (*("",) * 4, *_times(transaction.lag)))
            yield FigureRow("from its start", 1, (*("",) * 4, *_times(transaction.service)))
        for op in transaction.ops:
            yield from _op_rows(op, 1)
    if part.transactions and part.outside:
        yield _outside_row(part)
    for op in part.outside:
        yield from _op_rows(op, 1 if part.transactions else 0)


def error_rows(target: TargetSummary) -> Iterator[tuple[str, ...]]:
    """Yield what failed on a target: where, how, how often, mean and longest time."""
    overall = target.overall
    inside = [(f"{found.name}/", op) for found in overall.transactions for op in found.ops]
    outside = [(f"{NO_TRANSACTION}/" if inside else "", op) for op in overall.outside]
    for prefix, op in (*inside, *outside):
        for outcome in op.outcomes:
            if not outcome.expected:
                yield (
                    f"{prefix}{op.op}",
                    target.name,
                    outcome.outcome,
                    format_count(outcome.count),
                    format_time_ns(outcome.mean_ns),
                    format_time_ns(outcome.max_ns),
                )


def ranking_rows(ranking: Iterable[ComparedFigure]) -> Iterator[tuple[str, ...]]:
    """Yield every place: figure, target, value, ratio, spread, and what is claimed."""
    for ranked in ranking:
        for place in ranked.standings:
            yield (
                f"{ranked.subject} {ranked.figure}",
                place.label,
                show_value(ranked, place.value),
                format_times(place.ratio),
                show_spread(ranked, place),
                place.claim,
            )


def show_value(ranked: ComparedFigure, value: float) -> str:
    """Return a figure in the unit that fits."""
    return format_time_ns(value) if ranked.unit == "ns" else format_rate(value)


def show_spread(ranked: ComparedFigure, place: ComparisonRow) -> str:
    """Return the lowest and highest round, with the unit once where it is the same."""
    if place.low is None or place.high is None:
        return DASH
    low, high = show_value(ranked, place.low), show_value(ranked, place.high)
    number, blank, unit = low.partition(" ")
    return f"{number if high.endswith(blank + unit) else low}{DASH}{high}"


def show_time(value_ns: float | None) -> str:
    """Return the cell of a time; a dash where there are too few samples, or none."""
    return DASH if value_ns is None else format_time_ns(value_ns)


def show_rate(value_per_s: float | None) -> str:
    """Return the cell of a rate; a dash where nothing was measured for any time."""
    return DASH if value_per_s is None else format_rate(value_per_s)


def _op_rows(op: Performance, depth: int) -> Iterator[FigureRow]:
    """Yield the row of an op, and one for those of its calls that only found the end."""
    yield FigureRow(op.op, depth, _cells(op, op.time))
    for found in op.outcomes:
        if found.outcome == FOUND_END:
            mean, longest_ns = format_time_ns(found.mean_ns), format_time_ns(found.max_ns)
            cells = (format_count(found.count), "", "", "", mean, *(DASH,) * 4, longest_ns)
            yield FigureRow("found the end", depth + 1, cells)


def _outside_row(part: RoundSummary) -> FigureRow:
    """Return how many calls no transaction holds; together they have no times."""
    count = sum(op.count for op in part.outside)
    moved = sum(op.bytes for op in part.outside)
    seconds = part.measured_s
    cells = (
        format_count(count),
        format_count(sum(op.errors for op in part.outside)),
        format_rate(count / seconds) if seconds else DASH,
        format_bytes(moved / seconds) if moved and seconds else DASH,
    )
    return FigureRow(NO_TRANSACTION, 0, (*cells, *("",) * (len(COLUMNS) - 1 - len(cells))))


def _cells(entry: TransactionSummary | Performance, times: Statistics) -> tuple[str, ...]:
    moved = entry.bytes_per_s
    return (
        format_count(entry.count),
        format_count(entry.errors),
        show_rate(entry.rate_per_s),
        format_bytes(moved) if moved else DASH,
        *_times(times),
    )


def _times(times: Statistics) -> tuple[str, ...]:
    figures = (times.mean_ns, times.p50_ns, times.p95_ns, times.p99_ns, times.p99_9_ns)
    return (*map(show_time, figures), longest(times.max_ns, is_bound=times.max_is_bound))


def longest(max_ns: int | None, *, is_bound: bool) -> str:
    """Return the cell of a maximum: where one never ended it may be a lower bound."""
    if max_ns is None:
        return DASH
    return format_at_least_ns(max_ns) if is_bound else format_time_ns(max_ns)
