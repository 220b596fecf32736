"""When each transaction, and each op of it, was under way in runs in which they took turns.

Jobs of fio run one after the other or side by side; one that reads back what it wrote does the two
one after the other. Run folders in, spans out; rates are worked out elsewhere.
"""

from collections.abc import Iterator

from replayer.measure.hlog import Segment, Span
from replayer.measure.record import RunRecord

__all__ = ["spans_of"]


def spans_of(
    record: RunRecord, segment: Segment, transaction: str, op: str | None = None
) -> Iterator[Span]:
    """Yield when a transaction, or an op in it, was under way.

    Args:
        record: Of a run whose order is 'in turn'.
        segment: The part of it.
        transaction: Its name.
        op: One of its ops, which has less time than all if they ran one after the other.
    """
    if op is None or transaction not in _verified_after(record):
        yield from record.log.intervals.get((segment, transaction), ())
        return
    for key, seconds in record.seconds.items():
        if (key.segment, key.transaction, key.op) == (segment, transaction, op):
            for start, end in zip(seconds.start_s, seconds.end_s, strict=True):
                yield Span(float(start), float(end))


def _verified_after(record: RunRecord) -> frozenset[str]:
    """Return the jobs that read back what they wrote when all was written, as the plan says."""
    plan = record.plan or {}
    try:
        return frozenset(name for job in plan["jobs"] for name in job["verified_after"])
    except (KeyError, TypeError, AttributeError):
        return frozenset()  # of an earlier version: its directions have one time
