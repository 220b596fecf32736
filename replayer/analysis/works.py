"""One kind of work (a transaction, or an op as one transaction makes it), and who made it slow.

An op's calls in several transactions are no one kind: one opens files that are there, another makes
them, and of fio's jobs one may run with a queue of 32 and never beside the other. Groups and
outliers among such calls would tell of the transactions, not of the file system.

Histograms hold all calls; the events hold the slowest calls with their paths. The engine does next
to nothing between two calls of a plan. A transaction that loses milliseconds there waited for a
CPU. Such waits are rare, but they can make a high percentile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from replayer.analysis.finding import Between, Outliers, SlowPath, Tail, TailOp
from replayer.analysis.slots import LATENCY, SERVICE, TIMES, Kind
from replayer.analysis.steps import WORTH_SHARE
from replayer.measure import OUTSIDE, Histogram, Of, RunRecord, Target, samples_of


def steps_by_transaction(record: RunRecord) -> dict[str, list[Mapping[str, Any]]]:
    """Return the steps of each transaction, however deep they lie; none of a plan of another kind.

    Whatever is a mapping counts as one: what reads them looks for keys that only steps have.
    """
    plan = record.plan or {}
    try:
        return {found["name"]: [*_mappings(found["steps"])] for found in plan["transactions"]}
    except (KeyError, TypeError, RecursionError):
        return {}


def steps_within(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps that lie in one, however deep: how often they are made is not known."""
    return [found for value in step.values() for found in _mappings(value)]


def _mappings(node: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(node, dict):
        yield node
    inside: Sequence[Any] = [*node.values()] if isinstance(node, dict) else node
    if isinstance(inside, list):
        for item in inside:
            yield from _mappings(item)


@dataclass(frozen=True, eq=False)
class Work:
    """One kind of work on one target: a transaction, or an op of one (None: of none).

    ``beside`` are the ops of the same transaction, ``histogram`` the times of what succeeded.
    """

    target: Target
    subject: str
    kind: Kind
    transaction: str | None
    beside: frozenset[str]
    histogram: Histogram


def find_works(record: RunRecord) -> Iterator[Work]:
    """Yield the transactions of each target, then the ops that take a part of its time.

    A job of fio whose I/Os are of one kind is told of once.
    """
    found = _by_transaction(record)
    for target in record.run.targets:
        own = {name: ops for (index, name), ops in found.items() if index == target.index}
        for name, ops in own.items():
            if LATENCY in ops:
                made = frozenset(ops) - TIMES
                yield Work(target, name, "transaction", None, made, ops[LATENCY])
        yield from _ops(record, target, own)


def _ops(
    record: RunRecord, target: Target, own: Mapping[str, Mapping[str, Histogram]]
) -> Iterator[Work]:
    spent = {
        (name, op): histogram.mean * histogram.count
        for name, ops in own.items()
        for op, histogram in ops.items()
        if op not in TIMES
    }
    worth = WORTH_SHARE * sum(spent.values())
    for (name, op), time_ns in spent.items():
        made = frozenset(own[name]) - TIMES
        whole = record.run.load.order == "in turn" and len(made) == 1
        if time_ns >= worth and not whole:
            transaction = None if name == OUTSIDE else name
            yield Work(target, op, "op", transaction, made, own[name][op])


def _by_transaction(record: RunRecord) -> Mapping[tuple[int, str], Mapping[str, Histogram]]:
    """Return the measured times of what succeeded, by target and transaction, and there by op."""
    parts: dict[tuple[int, str], dict[str, list[Histogram]]] = {}
    for key, histogram in sorted(record.log.histograms.items()):
        if key.segment.phase == "measured" and key.is_timed:
            ops = parts.setdefault((key.segment.target, key.transaction), {})
            ops.setdefault(key.op, []).append(histogram)
    return {
        place: {op: Histogram.merged(found) for op, found in ops.items()}
        for place, ops in parts.items()
    }


FEWEST = 100  # transactions: a p95 of fewer has too few above it; chosen
FEWEST_P99 = 1_000  # chosen
OUTLIER_FACTOR = 100.0  # chosen: an outlier takes 100 times the median
OUTLIER_SHARE = 0.02  # chosen: more calls than that are a group of their own (``modes``)
OUTLIER_TIME = 0.1  # chosen: outliers that take less than a tenth of the time do not matter
MOST_PATHS = 3  # chosen
FEWEST_OF_PATH = 3  # chosen: a path that is slow once or twice is chance


def find_outliers(works: Iterable[Work]) -> Iterator[Outliers]:
    """Yield the work in which few calls take much of the time."""
    for work in works:
        histogram = work.histogram
        if histogram.count < FEWEST:
            continue
        limit = OUTLIER_FACTOR * histogram.percentile(50)
        far = _above(histogram, limit)
        share = _time(far) / max(_time(histogram), 1.0)
        few = 0 < far.count <= OUTLIER_SHARE * histogram.count
        if few and share >= OUTLIER_TIME:
            yield Outliers(
                target=work.target.name,
                subject=work.subject,
                kind=work.kind,
                transaction=work.transaction,
                limit_ns=limit,
                count=far.count,
                of=histogram.count,
                time_share=share,
                max_ns=histogram.max,
            )


def find_tails(record: RunRecord, works: Iterable[Work]) -> Iterator[Tail]:
    """Yield, for each transaction with samples enough, what made its slowest slow.

    A job of fio is no transaction that is made of calls: each of its I/Os is one, and a flush none.
    """
    if record.run.load.order == "in turn":
        return
    for work in works:
        if work.kind == "transaction" and work.histogram.count >= FEWEST:
            yield _tail(record, work)


def _tail(record: RunRecord, work: Work) -> Tail:
    latency, index, transaction = work.histogram, work.target.index, work.subject
    percentile: Literal["p95", "p99"] = "p99" if latency.count >= FEWEST_P99 else "p95"
    limit = latency.percentile(99 if percentile == "p99" else 95)
    slow = _above(latency, limit).count
    found = {
        op: _above(samples_of(record, Of(index, transaction, op)), limit).count
        for op in sorted(work.beside)
    }
    ops = [TailOp(op=op, calls=calls) for op, calls in found.items() if calls]
    alone = sum(found.values())
    return Tail(
        target=work.target.name,
        transaction=transaction,
        percentile=percentile,
        limit_ns=limit,
        slow=slow,
        ops=tuple(sorted(ops, key=lambda item: -item.calls)),
        explained=min(alone / slow, 1.0) if slow else 0.0,
        paths=tuple(_paths(record, index, transaction, limit)),
    )


def _paths(record: RunRecord, index: int, transaction: str, limit_ns: int) -> Iterator[SlowPath]:
    """Yield the paths that are among the kept slow calls above the limit more than once."""
    seen: dict[tuple[str, str], list[int]] = {}
    for event in record.events:
        time = event.get("service_ns")
        if (
            event.get("kind") == "slow"
            and event.get("target") == index
            and event.get("transaction") == transaction
            and isinstance(time, int)
            and time > limit_ns
        ):
            seen.setdefault((str(event.get("path")), str(event.get("op"))), []).append(time)
    often = [item for item in seen.items() if len(item[1]) >= FEWEST_OF_PATH]
    often.sort(key=lambda item: (-len(item[1]), -max(item[1])))
    for (path, op), times in often[:MOST_PATHS]:
        yield SlowPath(path=path, op=op, calls=len(times), max_ns=max(times))


def _above(histogram: Histogram, limit_ns: float) -> Histogram:
    chosen = histogram.layout.lowest(histogram.indices) > limit_ns
    return Histogram(histogram.layout, histogram.indices[chosen], histogram.counts[chosen])


def _time(histogram: Histogram) -> float:
    return histogram.mean * histogram.count


MARGIN = 4  # chosen: a transaction may make more calls than others, hardly as many times as many
_PAUSES = frozenset({"think", "replay", "choose"})
"""Steps that pass time between calls, or of which a few make many more calls than most."""


def find_between(record: RunRecord, works: Iterable[Work]) -> Iterator[Between]:
    """Yield the transactions whose p99 is more than their calls can have taken.

    Only of plans whose steps leave no time between calls, with 1,000 samples at least.
    """
    busy = {
        name
        for name, steps in steps_by_transaction(record).items()
        if _PAUSES.isdisjoint(str(step.get("do")) for step in steps)
    }
    for work in works:
        if work.kind == "transaction" and work.subject in busy:
            yield from _between(record, work)


def _between(record: RunRecord, work: Work) -> Iterator[Between]:
    place = (work.target.index, work.subject)
    service = samples_of(record, Of(*place, SERVICE))
    if service.count < FEWEST_P99:
        return
    ops = [samples_of(record, Of(*place, op)) for op in work.beside]
    most_ns = sum(-(-op.count // service.count) * op.max for op in ops)
    p99_ns = service.percentile(99)
    if most_ns and p99_ns > MARGIN * most_ns:
        yield Between(
            target=work.target.name, transaction=work.subject, p99_ns=p99_ns, calls_ns=most_ns
        )
