"""The figures of a run as rows of text: what the table, the Markdown and the terminal show alike.

One row per transaction, then one per op of it. A figure that there is none of is a dash.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from replayer.measure import (
    LoadFacts,
    Performance,
    RoundSummary,
    Statistics,
    TransactionSummary,
    format_bytes,
    format_count,
    format_rate,
    format_time_ns,
)
from replayer.report.grid import Column

__all__ = ["COLUMNS", "DASH", "FigureRow", "figure_rows", "format_optional_time"]

DASH = "\N{EN DASH}"

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


@dataclass(frozen=True)
class FigureRow:
    """A row: its name, how deep it is under another, and its cells."""

    name: str
    depth: int
    cells: tuple[str, ...]


def figure_rows(part: RoundSummary, load: LoadFacts) -> Iterator[FigureRow]:
    """Yield the rows of a target: each transaction with its ops; ops outside of any come last."""
    for transaction in part.transactions:
        yield _transaction_row(transaction)
        if load.loop != "closed":  # a closed loop starts when it intends to
            yield FigureRow("waiting to start", 1, _times_only(transaction.lag))
            yield FigureRow("from its start", 1, _times_only(transaction.service))
        for op in transaction.ops:
            yield FigureRow(op.op, 1, _cells(op, op.time))
    if not part.transactions:
        for op in part.ops:
            yield FigureRow(op.op, 0, _cells(op, op.time))


def format_optional_time(value_ns: float | None) -> str:
    """Return a time, or a dash."""
    return DASH if value_ns is None else format_time_ns(value_ns)


def _transaction_row(transaction: TransactionSummary) -> FigureRow:
    return FigureRow(transaction.name, 0, _cells(transaction, transaction.latency))


def _cells(entry: TransactionSummary | Performance, times: Statistics) -> tuple[str, ...]:
    moved = entry.bytes_per_s
    return (
        format_count(entry.count),
        format_count(entry.errors),
        DASH if entry.rate_per_s is None else format_rate(entry.rate_per_s),
        format_bytes(moved) if moved else DASH,
        *_times(times),
    )


def _times_only(times: Statistics) -> tuple[str, ...]:
    return ("", "", "", "", *_times(times))


def _times(times: Statistics) -> tuple[str, ...]:
    figures = (
        times.mean_ns,
        times.p50_ns,
        times.p95_ns,
        times.p99_ns,
        times.p99_9_ns,
        times.max_ns,
    )
    return tuple(format_optional_time(figure) for figure in figures)
