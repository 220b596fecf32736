"""What is one kind of work: a transaction, or an op as one transaction makes it.

An op's calls in several transactions are no such thing: one opens files that are there, another
makes them, and of fio's jobs one may run with a queue of 32 and never beside the other. Groups and
outliers among such calls would tell of the transactions, not of the file system.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replayer.analysis.slots import LATENCY, TIMES, Kind
from replayer.analysis.steps import WORTH_SHARE
from replayer.measure import OUTSIDE, Histogram, RunRecord, Target


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
