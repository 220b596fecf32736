"""Ranking targets: each figure with its ratio to the best and its spread over the rounds.

Pure. A difference is claimed only where every round of one target lies beyond every round of the
best one: with interleaved rounds, noise that comes and goes hits all targets, and overlapping
rounds prove nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

from replayer.measure import (
    Performance,
    RoundSummary,
    Statistics,
    Summary,
    TargetSummary,
    TransactionSummary,
)
from replayer.report.document import Place, Ranked

__all__ = ["CLAIM_ROUNDS", "chance_of_claim", "rank", "rounds_lie_apart"]

Order = Literal["together", "in turn"]
_Entry = TransactionSummary | Performance
_SPREAD_ROUNDS = 2  # one round has no spread
CLAIM_ROUNDS = 3
"""Chosen: with two rounds, chance alone keeps those of two equal targets apart 1 time in 3."""


def chance_of_claim(rounds: int) -> int:
    """Return N: equal targets would look different 1 time in N, for each figure.

    Of the C(2n, n) ways in which the rounds of two equal targets can be ordered, two keep them
    apart.
    """
    return comb(2 * rounds, rounds) // 2


@dataclass(frozen=True)
class _Figure:
    name: Literal["p50", "p95", "p99", "throughput"]
    unit: Literal["ns", "per_s"]
    better: Literal["lower", "higher"]
    of: Callable[[_Entry], float | None]


@dataclass(frozen=True)
class _Standing:
    """A target's value of one figure, over all rounds and in each."""

    target: str
    value: float
    rounds: tuple[float, ...]


def rounds_lie_apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether every round of one lies beyond every round of the other; too few never do."""
    if min(len(one), len(other)) < CLAIM_ROUNDS:
        return False
    return max(one) < min(other) or max(other) < min(one)


def rank(summary: Summary, order: Order = "together") -> tuple[Ranked, ...]:
    """Rank the targets of a run by each figure that at least two of them have.

    Args:
        summary: What it measured.
        order: How its transactions ran: those that ran in turn are different work, and an op over
            all of them is no figure.
    """
    if len(summary.targets) == 1:
        return ()
    subjects = dict.fromkeys(
        (kind, name)
        for target in summary.targets
        for kind, name in _subjects(target.overall, order)
    )
    ranked = (
        _ranked(summary, kind, name, figure)
        for kind, name in sorted(subjects, key=lambda subject: subject[0] == "op")
        for figure in (_FIGURES if kind == "transaction" else _FIGURES[:2])
    )
    return tuple(found for found in ranked if found is not None)


_Kind = Literal["transaction", "op"]


def _subjects(overall: RoundSummary, order: Order) -> Iterator[tuple[_Kind, str]]:
    for transaction in overall.transactions:
        yield "transaction", transaction.name
    shared = Counter(op.op for found in overall.transactions for op in found.ops)
    whole = {found.ops[0].op for found in overall.transactions if len(found.ops) == 1}
    for op in overall.ops:
        # Of one transaction alone, and not all of it.
        if order == "together" or (shared[op.op] == 1 and op.op not in whole):
            yield "op", op.op


def _ranked(summary: Summary, kind: _Kind, name: str, figure: _Figure) -> Ranked | None:
    found = [_standing(target, kind, name, figure) for target in summary.targets]
    standings = [standing for standing in found if standing is not None]
    if len(standings) < _FEWEST_TARGETS:
        return None
    standings.sort(key=lambda item: item.value, reverse=figure.better == "higher")
    return Ranked(
        subject=name,
        kind=kind,
        figure=figure.name,
        unit=figure.unit,
        better=figure.better,
        places=tuple(_place(standing, standings[0]) for standing in standings),
    )


_FEWEST_TARGETS = 2


def _place(standing: _Standing, best: _Standing) -> Place:
    several = len(standing.rounds) >= _SPREAD_ROUNDS
    return Place(
        target=standing.target,
        value=standing.value,
        ratio=standing.value / best.value if best.value else 1.0,
        low=min(standing.rounds) if several else None,
        high=max(standing.rounds) if several else None,
        differs=rounds_lie_apart(standing.rounds, best.rounds),
    )


def _standing(target: TargetSummary, kind: _Kind, name: str, figure: _Figure) -> _Standing | None:
    value = _value(target.overall, kind, name, figure)
    if value is None:
        return None
    each = (_value(part, kind, name, figure) for part in target.rounds)
    return _Standing(target.name, value, tuple(found for found in each if found is not None))


def _value(part: RoundSummary, kind: _Kind, name: str, figure: _Figure) -> float | None:
    if kind == "transaction":
        return next((figure.of(item) for item in part.transactions if item.name == name), None)
    return next((figure.of(item) for item in part.ops if item.op == name), None)


def _times(entry: _Entry) -> Statistics:
    return entry.latency if isinstance(entry, TransactionSummary) else entry.time


_FIGURES = (
    _Figure("p50", "ns", "lower", lambda entry: _times(entry).p50_ns),
    _Figure("p95", "ns", "lower", lambda entry: _times(entry).p95_ns),
    _Figure("p99", "ns", "lower", lambda entry: _times(entry).p99_ns),
    _Figure("throughput", "per_s", "higher", lambda entry: entry.throughput_per_s),
)
