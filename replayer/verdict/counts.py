"""What a threshold on a number is held against: how many of its subject ended, and how."""

from dataclasses import dataclass

from replayer.measure import Performance, TargetSummary, TransactionSummary
from replayer.verdict.threshold import Threshold

__all__ = ["Counted", "count_subject", "find_transaction"]


@dataclass(frozen=True)
class Counted:
    """How many of a subject ended, and how.

    Attributes:
        count: Those that rates count.
        errors: What a limit on their number is held against.
        tries: What shares of errors are of.
        failed: Those of the tries that failed.
        rates: By metric, per second; None: no time was measured.
    """

    count: int
    errors: int
    tries: int
    failed: int
    rates: dict[str, float | None]


def count_subject(threshold: Threshold, target: TargetSummary) -> Counted | None:
    """Return what there is of a subject; None: there is no such subject."""
    subject = threshold.subject
    if subject is None:
        return _everything(target)
    transaction = find_transaction(target, subject.name)
    if subject.op is not None:
        ops = transaction.ops if transaction is not None else ()
        return _rates(next((op for op in ops if op.op == subject.op), None))
    if transaction is not None:
        return _rates(transaction)
    return _rates(next((op for op in target.overall.ops if op.op == subject.name), None))


def _rates(found: TransactionSummary | Performance | None) -> Counted | None:
    if found is None:
        return None
    rates = {
        "rate": found.rate_per_s,
        "throughput": found.throughput_per_s,
        "bytes": found.bytes_per_s,
    }
    return Counted(found.count, found.errors, found.count, found.errors, rates)


def _everything(target: TargetSummary) -> Counted:
    """Count transactions; where there are none, calls.

    Shares of errors have a base of their own: a transaction is one try, however many of its calls
    fail, and so is each call outside of transactions.
    """
    overall = target.overall
    counted = overall.transactions or overall.outside
    tries: list[TransactionSummary | Performance] = [*overall.transactions, *overall.outside]
    seconds = overall.measured_s
    count = sum(found.count for found in counted)
    good = sum(found.count - found.errors for found in counted)
    moved = sum(op.bytes for op in overall.ops)
    totals = {"rate": count, "throughput": good, "bytes": moved}
    return Counted(
        count=count,
        errors=overall.errors,
        tries=sum(found.count for found in tries),
        failed=sum(found.errors for found in tries),
        rates={name: total / seconds if seconds > 0 else None for name, total in totals.items()},
    )


def find_transaction(target: TargetSummary, name: str) -> TransactionSummary | None:
    """Return what is known of a transaction; None: a target has none of that name."""
    return next((found for found in target.overall.transactions if found.name == name), None)
