"""The report as CSV: one line per run, target, round, transaction and op, times in nanoseconds.

The round is ``all`` for all of them together, and the transaction for ops over all of them; calls
outside of any have ``no transaction``. A figure that the sample does not support is an empty cell.
``unfinished_ns`` is how long the oldest had lasted that never ended; a ``max_ns`` that equals it is
a lower bound.
"""

import csv
import io
from collections.abc import Iterator

from replayer.measure.summary import Performance, RoundSummary, Statistics, TransactionSummary
from replayer.report.document import Document
from replayer.report.figures import NO_TRANSACTION

CSV_COLUMNS = (
    "run", "target", "round", "transaction", "op", "count", "errors", "cancelled", "rate_per_s",
    "throughput_per_s", "bytes", "bytes_per_s", "mean_ns", "stdev_ns", "min_ns", "p50_ns", "p95_ns",
    "p99_ns", "p99_9_ns", "max_ns", "unfinished_ns",
)  # fmt: skip
_COUNTS, _TIMES = CSV_COLUMNS.index("count"), CSV_COLUMNS.index("mean_ns")
_Cell = str | int | float | None


def render_csv(*documents: Document) -> str:
    """Render runs as CSV with one header, ending with a newline."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for document in documents:
        for target in document.summary.targets:
            for part in (target.overall, *target.rounds):
                number = "all" if part.number is None else str(part.number)
                writer.writerows((document.id, target.name, number, *row) for row in _rows(part))
    return text.getvalue()


def _rows(part: RoundSummary) -> Iterator[tuple[_Cell, ...]]:
    for transaction in part.transactions:
        whole = _counts(transaction, transaction.cancelled)
        yield (transaction.name, "transaction", *whole, *_times(transaction.latency))
        none = (None,) * len(whole)
        yield (transaction.name, "transaction.service", *none, *_times(transaction.service))
        yield (transaction.name, "transaction.lag", *none, *_times(transaction.lag))
        if transaction.event_lag is not None:
            yield (transaction.name, "event.lag", *none, *_times(transaction.event_lag))
        for op in transaction.ops:
            yield (transaction.name, op.op, *_counts(op, None), *_times(op.time))
    for op in part.outside:
        yield (NO_TRANSACTION, op.op, *_counts(op, None), *_times(op.time))
    for op in part.ops:
        yield ("all", op.op, *_counts(op, None), *_times(op.time))


def _counts(entry: TransactionSummary | Performance, cancelled: int | None) -> tuple[_Cell, ...]:
    known = {**dict(entry), "cancelled": cancelled}
    return tuple(known[column] for column in CSV_COLUMNS[_COUNTS:_TIMES])


def _times(times: Statistics) -> tuple[_Cell, ...]:
    return tuple(getattr(times, column) for column in CSV_COLUMNS[_TIMES:])
