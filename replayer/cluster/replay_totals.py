"""Adding up how far the replays of several workers agreed with their traces. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replayer.measure.replay import (
    Counted,
    DivergenceCount,
    ReplayedTarget,
    ReplayResults,
    counted,
)

__all__ = ["add_replays"]

MOST_EXAMPLES = 20  # as one engine keeps


def add_replays(found: Sequence[Mapping[str, Any]]) -> ReplayResults | None:
    """Return the sum of several workers' results; None where nothing was replayed."""
    parts = [ReplayResults.model_validate(each) for each in found]
    if not parts:
        return None
    return ReplayResults(
        performances=sum(part.performances for part in parts),
        events=sum(part.events for part in parts),
        compared=sum(part.compared for part in parts),
        matched=sum(part.matched for part in parts),
        omitted=_counts(part.omitted for part in parts),
        allowed=_counts(part.allowed for part in parts),
        diverged=_diverged(parts),
        examples=tuple(each for part in parts for each in part.examples)[:MOST_EXAMPLES],
        targets=_targets(parts),
    )


def _counts(parts: Iterable[Sequence[Counted]]) -> tuple[Counted, ...]:
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update({each.name: each.count for each in part})
    return counted(sums)


def _diverged(parts: Sequence[ReplayResults]) -> tuple[DivergenceCount, ...]:
    sums: Counter[DivergenceCount] = Counter()
    for part in parts:
        for each in part.diverged:
            sums[each.model_copy(update={"count": 0})] += each.count
    return tuple(
        kind.model_copy(update={"count": count})
        for kind, count in sorted(sums.items(), key=lambda item: -item[1])
    )


def _targets(parts: Sequence[ReplayResults]) -> tuple[ReplayedTarget, ...]:
    found: dict[int, ReplayedTarget] = {}
    for part in parts:
        for each in part.targets:
            known = found.get(each.index)
            found[each.index] = each if known is None else _sum_of(known, each)
    return tuple(found[index] for index in sorted(found))


def _sum_of(one: ReplayedTarget, other: ReplayedTarget) -> ReplayedTarget:
    return ReplayedTarget(
        index=one.index,
        performances=one.performances + other.performances,
        events=one.events + other.events,
        compared=one.compared + other.compared,
        matched=one.matched + other.matched,
        drift_ns=max(one.drift_ns, other.drift_ns),
    )
