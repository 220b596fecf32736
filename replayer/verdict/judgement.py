"""Judging a run: each threshold on each target, then the run as a whole.

A figure is inconclusive, with a reason, if the sample does not support it or if it may be the
client's and not the file system's. So is a limit that is missed in a part of a run: the rest of it
might have kept the limit. A run that fails because its
target broke proves nothing about it: that has an exit code of its own. Nothing is printed here.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from replayer.errors import EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE
from replayer.measure.clients import TaskFailure
from replayer.measure.facts import Frozen
from replayer.measure.health import is_of_the_client
from replayer.measure.record import RunRecord
from replayer.measure.run import Outcome
from replayer.measure.summarise import PARTS, Of, samples_of, unfinished_of
from replayer.measure.summary import (
    Performance,
    Summary,
    TargetSummary,
    TransactionSummary,
    samples_needed,
)
from replayer.measure.units import (
    AT_LEAST,
    format_bytes,
    format_count,
    format_rate,
    format_ratio,
    format_share,
    format_time_ns,
)
from replayer.measure.verification import Verification
from replayer.verdict.reasons import breakages_among, find_reasons, say_breakages
from replayer.verdict.steadiness import Steadiness
from replayer.verdict.threshold import (
    AS_RECORDED,
    DEFAULT,
    Subject,
    Threshold,
    Unit,
    parse_threshold,
)


@dataclass(frozen=True)
class SubjectCounts:
    """How many of a subject ended, and how."""

    count: int
    """Those that rates count."""
    errors: int
    """What a limit on their number is held against."""
    tries: int
    """What shares of errors are of."""
    failed: int
    """Those of the tries that failed."""
    rates: dict[str, float | None]
    """By metric, per second; None: no time was measured."""


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


def _calls(threshold: Threshold, target: TargetSummary) -> Iterator[Performance]:
    """Yield the calls that a threshold is about."""
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


EXIT_CODES: dict[Outcome, int] = {"pass": 0, "fail": 1, "inconclusive": EXIT_INCONCLUSIVE}


class Judgement(Frozen):
    """One threshold on one target."""

    threshold: str
    source: str
    target: str
    outcome: Outcome
    measured: float | None
    """In the unit of the limit; null: there is no such figure."""
    limit: float
    unit: Unit
    says: str
    """The figure, or why there is none, for a person."""


class Verdict(Frozen):
    """What the run proves."""

    outcome: Outcome
    exit_code: int
    """0, 1, 3 or 4; of a run that failed, that of its failure."""
    judgements: tuple[Judgement, ...]
    reasons: tuple[str, ...]
    """Why the run as a whole is inconclusive, or what broke; empty when neither is so."""


def judge(record: RunRecord, summary: Summary) -> Verdict:
    """Judge a run by its own thresholds.

    Raises:
        ReplayerError: A threshold in run.json is not one.
    """
    thresholds = [parse_threshold(stated.text, stated.source) for stated in record.run.thresholds]
    pairs = [
        (own, target)
        for threshold in thresholds
        for target in summary.targets
        for own in _narrowed(threshold, target, thresholds)
    ]
    steadiness = Steadiness(record)
    limits = tuple(
        _judge_steadiness(threshold, steadiness, target)
        if threshold.metric.is_steadiness
        else _judge(threshold, record, target)
        for threshold, target in pairs
    )
    proofs = (*_order(record), *_verified(record), *_tasks(record), *_against_baseline(record))
    broken = {
        target.index: say_breakages(target)
        for threshold, target in pairs
        if _breaks(threshold, target)
    }
    losses = record.run.losses
    reasons = (*losses, *broken.values(), *find_reasons(record, summary))
    judgements = (*limits, *proofs)
    outcome = _overall({judgement.outcome for judgement in judgements}, reasons)
    disproved = any(judgement.outcome == "fail" for judgement in proofs)
    environment = losses or (broken and not disproved)
    code = EXIT_ENVIRONMENT if environment else EXIT_CODES[outcome]
    failed = record.run.failure_code
    return Verdict(
        outcome=outcome,
        exit_code=code if failed is None else failed,
        judgements=judgements,
        reasons=reasons,
    )


def _narrowed(
    threshold: Threshold, target: TargetSummary, thresholds: Sequence[Threshold]
) -> Iterator[Threshold]:
    """Yield the part of a threshold that is judged on a target: all, some or nothing.

    One that nobody wrote is about what no other one on errors names.
    """
    if threshold.target not in {None, target.name}:
        return
    stated = [
        each.subject
        for each in thresholds
        if each.metric.kind == "errors"
        and each.source not in _ADDED
        and each.target in {None, target.name}
    ]
    if threshold.source not in _ADDED or not stated:
        yield threshold
    elif None not in stated:
        rest = replace(threshold, beside=tuple(each for each in stated if each is not None))
        if count_subject(rest, target) is not None:
            yield rest


_ADDED = {DEFAULT, AS_RECORDED}


def _order(record: RunRecord) -> Iterator[Judgement]:
    """Judge whether a replay kept the order of its trace, where that was checked."""
    order = record.run.replay.order if record.run.replay is not None else None
    if order is not None:
        violated = format_count(order.violated)
        says = f"{format_count(order.edges)} edges checked, {violated} violated"
        yield _none_of(record, ("order kept", "--check-order"), order.violated, says)


def _verified(record: RunRecord) -> Iterator[Judgement]:
    """Judge whether reads returned what was written, where that was checked."""
    found = record.run.verification
    if found is None:
        return
    wrong, checked, last = found.wrong_total, found.checked_bytes, found.last
    failed = 0 if last is None else last.failed_files + last.unsynced_files
    fine: Outcome = "pass" if checked and not failed else "inconclusive"
    says = _checked(found) if checked or wrong else "nothing that was read could be checked"
    yield _none_of(record, ("data as written", "--verify"), wrong, says, fine)


def _against_baseline(record: RunRecord) -> Iterator[Judgement]:
    """Judge whether a run is as fast as the kept one, where it was held against one."""
    kept = record.run.baseline
    if kept is None:
        return
    for found in kept.figures:
        ratio = "too little was measured to compare (-t measures longer)"
        if found.ratio and found.low and found.high:
            ratio = (
                f"{format_ratio(found.ratio)} times ({format_ratio(found.low)} to "
                f"{format_ratio(found.high)}) of {format_time_ns(found.before_ns)}"
            )
        yield Judgement(
            threshold=f"{found.what}.{found.figure} <= {1 + kept.tolerance:.0%} of {kept.name}",
            source=f"--baseline {kept.name}",
            target=found.target,
            outcome=found.outcome,
            measured=found.ratio,
            limit=1 + kept.tolerance,
            unit="share",
            says=f"{format_time_ns(found.after_ns)}, {ratio}",
        )
    if not kept.figures:
        yield Judgement(
            threshold=f"as fast as {kept.name}",
            source=f"--baseline {kept.name}",
            target=_targets(record),
            outcome="inconclusive",
            measured=None,
            limit=1 + kept.tolerance,
            unit="share",
            says="too few transactions succeeded to compare",
        )


def _tasks(record: RunRecord) -> Iterator[Judgement]:
    """Judge the tasks of a locustfile and their requests, where some raised or failed."""
    for what, (limit, says) in _TASKS.items():
        failures = [found for found in record.run.task_failures if found.what == what]
        if not failures:
            continue
        raised = sum(found.count for found in failures)
        others = len(failures) - 1
        more = f", and {others} other kind{'s' * (others > 1)} (task_failures in run.json)"
        first = f"{format_count(raised)} {says}, first {_raised(failures[0])}"
        told = f"{first}{more if others else ''}"
        yield _none_of(record, (limit, "the locustfile"), raised, told)


def _none_of(
    record: RunRecord, stated: tuple[str, str], count: int, says: str, fine: Outcome = "pass"
) -> Judgement:
    """Judge what there should be none of, on any target: ``stated`` is that, and where it is."""
    return Judgement(
        threshold=stated[0],
        source=stated[1],
        target=_targets(record),
        outcome="fail" if count else fine,
        measured=float(count),
        limit=0.0,
        unit="count",
        says=says,
    )


def _targets(record: RunRecord) -> str:
    return ", ".join(target.name for target in record.run.targets)


_TASKS = {
    "shape": ("the load shape raises nothing", "raised"),
    "task": ("tasks raise nothing", "raised"),
    "request": ("other requests succeed", "failed"),
}


def _raised(found: TaskFailure) -> str:
    return found.raised if found.place is None else f"{found.raised} at {found.place}"


def _checked(found: Verification) -> str:
    says = (
        f"{format_bytes(found.checked_bytes)} checked, {format_count(found.wrong_total)} "
        "blocks wrong"
    )
    last = found.last
    if last is not None and (last.failed_files or last.unsynced_files):
        says += (
            f"; {format_count(last.failed_files)} files could not be read back, fsync failed for "
            f"{format_count(last.unsynced_files)}"
        )
    if last is not None and last.left_files:
        says += f"; {format_count(last.left_files)} files were left unread"
    return says


def _overall(outcomes: set[Outcome], reasons: tuple[str, ...]) -> Outcome:
    if "fail" in outcomes:
        return "fail"  # what was measured is enough to prove that
    return "inconclusive" if reasons or "inconclusive" in outcomes else "pass"


def _judge(threshold: Threshold, record: RunRecord, target: TargetSummary) -> Judgement:
    measured, missing = _measure(threshold, record, target)
    outcome = _outcome(threshold, record, measured)
    says = missing if measured is None else _FORMATS[threshold.unit](measured)
    if measured is not None and measured == _bound(threshold, record, target):
        says = f"{AT_LEAST}{says}: it had not ended when its turn did"
        compares = _COMPARES[threshold.comparison]
        if compares(measured, threshold.limit) != compares(inf, threshold.limit):
            outcome = "inconclusive"
    if threshold.beside:
        says += f", of all but {' and '.join(map(str, threshold.beside))}"
    excuse = (_part(record) or _lag(threshold, record, target)) if outcome == "fail" else None
    if excuse is not None:
        outcome, says = "inconclusive", f"{says}: missed {excuse}"
    return _judged(threshold, target, outcome, measured, says)


def _judge_steadiness(
    threshold: Threshold, steadiness: Steadiness, target: TargetSummary
) -> Judgement:
    """Judge cliffs or a drift: what may be on both sides of the limit proves nothing."""
    record, found = steadiness.record, steadiness.figure(threshold, target.index)
    outcome, says = found.judged(_COMPARES[threshold.comparison], threshold.limit), found.says
    part = _part(record)
    if outcome == "fail":
        outcome = _missed(threshold, record)
        if part is not None:
            outcome, says = "inconclusive", f"{says}: missed {part}"
    return _judged(threshold, target, outcome, found.value, says)


def _judged(
    threshold: Threshold,
    target: TargetSummary,
    outcome: Outcome,
    measured: float | None,
    says: str,
) -> Judgement:
    return Judgement(
        threshold=threshold.text,
        source=threshold.source,
        target=target.name,
        outcome=outcome,
        measured=measured,
        limit=threshold.limit,
        unit=threshold.unit,
        says=says,
    )


def _part(record: RunRecord) -> str | None:
    """Say of which part of a run the figures are; None: of all of it."""
    return _UNFINISHED.get(record.status, "in what is left of the run" if record.damage else None)


_UNFINISHED = {
    "running": "in a run that has not ended yet",
    "interrupted": "when the run was interrupted",
    "killed": "when the run was killed",
}


def _lag(threshold: Threshold, record: RunRecord, target: TargetSummary) -> str | None:
    """Say that a closed loop's latency misses its limit only because this client woke users late.

    Where transactions come by a schedule, a slow mount makes the next ones late: there it counts.
    """
    metric = threshold.metric
    if not metric.is_time or metric.part != "latency" or record.run.load.loop != "closed":
        return None
    own = replace(threshold, metric=replace(metric, part="service"))
    measured, _ = _time(own, record, target)
    if measured is None or not _COMPARES[threshold.comparison](measured, threshold.limit):
        return None
    took = _FORMATS[threshold.unit](measured)
    return f"as users were woken late by this client; from the start of each it is {took}"


def _outcome(threshold: Threshold, record: RunRecord, measured: float | None) -> Outcome:
    if measured is None:
        return "inconclusive"
    if _COMPARES[threshold.comparison](measured, threshold.limit):
        return "pass"
    return _missed(threshold, record)


def _missed(threshold: Threshold, record: RunRecord) -> Outcome:
    """Return what a missed limit proves."""
    health = record.run.health
    # An error is an error on a busy client too; a time or a rate may be the client's.
    if threshold.metric.kind != "errors" and health is not None and is_of_the_client(health):
        return "inconclusive"
    return "fail"


def _measure(
    threshold: Threshold, record: RunRecord, target: TargetSummary
) -> tuple[float | None, str]:
    """Return the figure, or None and why there is none."""
    if threshold.metric.is_time:
        return _time(threshold, record, target)
    found = count_subject(threshold, target)
    if found is None:
        return None, f"no {threshold.subject} was measured on {target.name}"
    is_share = threshold.unit == "share"
    if threshold.metric.kind == "errors":
        # Calls may have failed in transactions that have not ended.
        if not found.tries and (is_share or not found.errors):
            return None, "nothing was measured"
        return (found.failed / found.tries if is_share else float(found.errors)), ""
    if not found.count:
        return None, "nothing was measured"
    return found.rates[threshold.metric.kind], "no time was measured"


def _breaks(threshold: Threshold, target: TargetSummary) -> bool:
    """Whether errors of a target that broke are enough to miss a limit of errors."""
    found = count_subject(threshold, target) if threshold.metric.kind == "errors" else None
    if found is None:
        return False
    outcomes = (each for op in _calls(threshold, target) for each in op.outcomes)
    broken = breakages_among(outcomes).total()
    measured: float = broken
    if threshold.unit == "share":
        # A try fails once, however many of its calls broke. Where none has ended, all broke.
        measured = min(broken, found.failed) / found.tries if found.tries else 1.0
    return broken > 0 and not _COMPARES[threshold.comparison](measured, threshold.limit)


def _time(
    threshold: Threshold, record: RunRecord, target: TargetSummary
) -> tuple[float | None, str]:
    histogram = samples_of(record, _of(threshold, target))
    metric, count = threshold.metric, histogram.count
    bound = _bound(threshold, record, target)
    if bound is not None:
        return max(bound, float(histogram.max)), ""
    needed = samples_needed(metric.percent) if metric.percent is not None else 1
    if count < needed:
        return None, f"too few samples: {count:,} of at least {needed:,}"
    if metric.percent is not None:
        return float(histogram.percentile(metric.percent)), ""
    figures = {"mean": histogram.mean, "min": float(histogram.min), "max": float(histogram.max)}
    return figures[metric.kind], ""


def _bound(threshold: Threshold, record: RunRecord, target: TargetSummary) -> float | None:
    """Return the lower bound of a maximum, if a call never ended; None: no such figure.

    How late something began is known, though it has not ended.
    """
    if threshold.metric.kind != "max" or threshold.metric.part == "lag":
        return None
    oldest_ns = unfinished_of(record, _of(threshold, target))
    return None if oldest_ns is None else float(oldest_ns)


def _of(threshold: Threshold, target: TargetSummary) -> Of:
    subject = threshold.subject
    if subject is None:  # refused by the grammar: a time is always of something
        raise ValueError(f"{threshold.text}: a time of nothing")
    if subject.op is not None:
        return Of(target.index, subject.name, subject.op)
    if find_transaction(target, subject.name) is None:
        return Of(target.index, None, subject.name)
    return Of(target.index, subject.name, PARTS[threshold.metric.part])


_COMPARES: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

_FORMATS: dict[Unit, Callable[[float], str]] = {
    "ns": format_time_ns,
    "count": lambda value: format_count(int(value)),
    "share": format_share,
    "per_s": format_rate,
    "bytes_per_s": lambda value: f"{format_bytes(value)}/s",
}
