"""What a threshold on a number is held against: how many of its subject ended, and how."""

from collections.abc import Iterator
from dataclasses import dataclass

from replayer.measure import OutcomeSummary, Performance, TargetSummary, TransactionSummary
from replayer.verdict.threshold import Subject, Threshold


@dataclass(frozen=True)
class SubjectCounts:
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


def count_subject(threshold: Threshold, target: TargetSummary) -> SubjectCounts | None:
    """Return what there is of a subject; None: there is no such subject."""
    subject = threshold.subject
    if subject is None:
        return _rest(target, threshold.beside) if threshold.beside else _everything(target)
    transaction = find_transaction(target, subject.name)
    if subject.op is not None:
        ops = transaction.ops if transaction is not None else ()
        return _rates(next((op for op in ops if op.op == subject.op), None))
    if transaction is not None:
        return _rates(transaction)
    return _rates(next((op for op in target.overall.ops if op.op == subject.name), None))


def _rates(found: TransactionSummary | Performance | None) -> SubjectCounts | None:
    if found is None:
        return None
    rates = {
        "rate": found.rate_per_s,
        "throughput": found.throughput_per_s,
        "bytes": found.bytes_per_s,
    }
    return SubjectCounts(found.count, found.errors, found.count, found.errors, rates)


def _everything(target: TargetSummary) -> SubjectCounts:
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
    return SubjectCounts(
        count=count,
        errors=overall.errors,
        tries=sum(found.count for found in tries),
        failed=sum(found.errors for found in tries),
        rates={name: total / seconds if seconds > 0 else None for name, total in totals.items()},
    )


def _rest(target: TargetSummary, beside: tuple[Subject, ...]) -> SubjectCounts | None:
    """Count what other thresholds do not name; None: there is nothing of the kind.

    A failed call that is named can have failed one transaction; all others have failed by the rest.
    """
    tries = failed = rest_calls = 0
    for found in target.overall.transactions:
        if Subject(found.name) in beside:
            continue
        rest = [op for op in found.ops if not _is_named(target, beside, found.name, op.op)]
        rest_failed = sum(op.errors for op in rest)
        named_failed = sum(op.errors for op in found.ops) - rest_failed
        tries += found.count
        failed += max(min(rest_failed, found.errors), found.errors - named_failed)
        rest_calls += rest_failed
    for op in target.overall.outside:
        if not _is_named(target, beside, None, op.op):
            tries += op.count
            failed += op.errors
            rest_calls += op.errors
    if not tries and not rest_calls:
        return None
    return SubjectCounts(tries, max(failed, rest_calls), tries, failed, {})


def _is_named(
    target: TargetSummary, beside: tuple[Subject, ...], transaction: str | None, op: str
) -> bool:
    """Whether one of the subjects is an op in a transaction, or outside of any (None)."""
    if Subject(op) in beside and find_transaction(target, op) is None:
        return True
    return transaction is not None and Subject(transaction, op) in beside


def outcomes_of(threshold: Threshold, target: TargetSummary) -> Iterator[OutcomeSummary]:
    """Yield how the calls ended that a threshold is about."""
    for op in _calls(threshold, target):
        yield from op.outcomes


def _calls(threshold: Threshold, target: TargetSummary) -> Iterator[Performance]:
    subject, beside = threshold.subject, threshold.beside
    if subject is not None:
        transaction = find_transaction(target, subject.name)
        ops = target.overall.ops if transaction is None else transaction.ops
        wanted = subject.name if transaction is None else subject.op
        yield from (op for op in ops if wanted in {None, op.op})
        return
    for found in target.overall.transactions:
        if Subject(found.name) not in beside:
            named = (op for op in found.ops if not _is_named(target, beside, found.name, op.op))
            yield from named
    outside = target.overall.outside
    yield from (op for op in outside if not _is_named(target, beside, None, op.op))


def find_transaction(target: TargetSummary, name: str) -> TransactionSummary | None:
    """Return what is known of a transaction; None: a target has none of that name."""
    return next((found for found in target.overall.transactions if found.name == name), None)
