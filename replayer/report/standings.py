"""Standings: each figure of all contenders with its ratio to the best and how sure that is.

Values are those of the full histograms; intervals come from resampling. A difference is claimed
where the 95 % interval of the ratio leaves out 1, no round of one lies among those of the other,
and both have samples and rounds enough; with fewer rounds the interval must also stay clear of what
another run might show.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from replayer.analysis import Distribution, Interval, Resampled, Subject, ratio_interval, resample
from replayer.measure import (
    Performance,
    RoundSummary,
    Statistics,
    TargetSummary,
    TransactionSummary,
)
from replayer.report.comparison import Claim, Compared, Standing

__all__ = [
    "CLAIM_ROUNDS",
    "FIGURES",
    "Entrant",
    "FigureName",
    "claim_notes",
    "find_standings",
    "lie_apart",
]

CLAIM_ROUNDS = 3
"""Chosen: with two rounds, chance alone keeps those of two equal targets apart 1 time in 3."""
FEW_ROUNDS_MARGIN = 1.25
"""Chosen: another run on a shared mount may well differ by a quarter."""
CLAIM_SAMPLES = 30
"""Chosen: below it one slow call more or less moves a median, and a rate, by some per cent."""
CLAIM_BEYOND = 5
"""Chosen: so many samples lie above a percentile of which something is claimed."""

Order = Literal["together", "in turn"]
_Entry = TransactionSummary | Performance
_Kind = Literal["transaction", "op"]
_AnyKind = Literal["transaction", "op", "all transactions"]
FigureName = Literal["p50", "p95", "p99", "throughput"]


@dataclass(frozen=True)
class FigureKind:
    """A figure: its name, unit, direction, percentile (None: throughput) and where it stands."""

    name: FigureName
    unit: Literal["ns", "per_s"]
    better: Literal["lower", "higher"]
    percent: float | None
    of: Callable[[_Entry], float | None]


def _times(entry: _Entry) -> Statistics:
    return entry.latency if isinstance(entry, TransactionSummary) else entry.time


FIGURES = (
    FigureKind("p50", "ns", "lower", 50.0, lambda entry: _times(entry).p50_ns),
    FigureKind("p95", "ns", "lower", 95.0, lambda entry: _times(entry).p95_ns),
    FigureKind("p99", "ns", "lower", 99.0, lambda entry: _times(entry).p99_ns),
    FigureKind("throughput", "per_s", "higher", None, lambda entry: entry.throughput_per_s),
)
ALL = "all transactions"
_OP_FIGURES = 2  # of ops: p50 and p95


@dataclass(frozen=True, eq=False)
class Entrant:
    """A contender with what was measured.

    Attributes:
        label: How it is called.
        summary: Its figures.
        distributions: Its distributions in time, of all targets of its run.
        seed: Of its run, for resampling.
        order: How its transactions ran.
    """

    label: str
    summary: TargetSummary
    distributions: Mapping[Subject, Distribution]
    seed: int
    order: Order


_Values = tuple[float | None, ...]
"""One for each of FIGURES."""


@dataclass(frozen=True, eq=False)
class _Figures:
    """One entrant's figures of one subject, over all rounds, in each, and resampled.

    Counted are all that ended, and as samples those that succeeded.
    """

    label: str
    count: int
    samples: int
    values: _Values
    rounds: tuple[_Values, ...]
    resampled: Resampled | None


def find_standings(entrants: Sequence[Entrant]) -> Iterator[Compared]:
    """Yield every figure that at least two entrants have: all together, transactions, then ops.

    Transactions that ran in turn are different work: together they have no figures.
    """
    found = {
        (kind, name): [each for entrant in entrants if (each := _figures(entrant, kind, name))]
        for kind, name in _subjects(entrants)
    }
    side_by_side = all(entrant.order == "together" for entrant in entrants)
    everywhere = [
        own
        for (kind, _), own in found.items()
        if kind == "transaction" and len(own) == len(entrants) and side_by_side
    ]
    for place in range(len(FIGURES)):
        common = _supported(everywhere, place)
        if len(common) > 1:
            yield from _ranked("all transactions", _together(common), [place])
    for (kind, name), own in found.items():
        places = range(len(FIGURES)) if kind == "transaction" else range(_OP_FIGURES)
        yield from _ranked(kind, own, places, name)


def _ranked(
    kind: _AnyKind, found: Sequence[_Figures], places: Iterable[int], name: str = ALL
) -> Iterator[Compared]:
    for place in places:
        figure, compared = FIGURES[place], _compared(found, place)
        if len(compared) > 1:
            yield Compared(
                subject=name,
                kind=kind,
                figure=figure.name,
                unit=figure.unit,
                better=figure.better,
                standings=compared,
            )


def _supported(
    everywhere: Sequence[Sequence[_Figures]], place: int
) -> Sequence[Sequence[_Figures]]:
    """Return the transactions that all entrants have this figure of, in each round if possible."""
    whole = [own for own in everywhere if all(each.values[place] for each in own)]
    rounds = [own for own in whole if all(values[place] for each in own for values in each.rounds)]
    return rounds if len(rounds) > 1 else whole


def _together(common: Sequence[Sequence[_Figures]]) -> list[_Figures]:
    """Return the geometric means over transactions, each weighted by its share of all of them."""
    counts = np.array([sum(each.count for each in entrants) for entrants in common], np.float64)
    weights = counts / max(float(counts.sum()), 1.0)
    together = []
    for parts in zip(*common, strict=True):
        resampled = [part.resampled for part in parts if part.resampled is not None]
        rounds = zip(*(part.rounds for part in parts), strict=False)
        together.append(
            _Figures(
                label=parts[0].label,
                count=sum(part.count for part in parts),
                samples=sum(part.samples for part in parts),
                values=_means([part.values for part in parts], weights),
                rounds=tuple(_means(values, weights) for values in rounds),
                resampled=_resampled(resampled, weights) if len(resampled) == len(parts) else None,
            )
        )
    return together


def _means(values: Sequence[_Values], weights: NDArray[np.float64]) -> _Values:
    """Return the geometric means; of throughputs the sum."""
    means: list[float | None] = []
    for place, figure in enumerate(FIGURES):
        own = [found for part in values if (found := part[place])]
        if len(own) < len(values):
            means.append(None)
        elif figure.percent is None:
            means.append(sum(own))
        else:
            means.append(float(np.exp(weights @ np.log(own))))
    return tuple(means)


def _resampled(parts: Sequence[Resampled], weights: NDArray[np.float64]) -> Resampled:
    values = np.array([part.values for part in parts])
    plain = np.array([part.plain for part in parts])
    with np.errstate(divide="ignore"):
        means = np.exp(np.tensordot(weights, np.log(values), 1))
        middle = np.exp(weights @ np.log(plain))
    for place, figure in enumerate(FIGURES):
        if figure.percent is None:
            means[:, place], middle[place] = values[:, :, place].sum(0), plain[:, place].sum()
    return Resampled(means, middle, min(part.rounds for part in parts))


def claim_notes(rounds: int, claims: AbstractSet[Claim]) -> Iterator[str]:
    """Yield what the claims of a ranking are worth that rests on so many rounds."""
    apart = (
        f"both have {CLAIM_SAMPLES} samples or more (for p95 {_samples_needed(95.0)}, for p99 "
        f"{_samples_needed(99.0)}), no round of it overlaps a round of the best, and the 95 % "
        "interval of the ratio"
    )
    if rounds >= CLAIM_ROUNDS:
        yield (
            f"differs: {apart} leaves out 1; of equal targets chance would say so at most 1 time "
            "in 20, for each figure"
        )
    if rounds < CLAIM_ROUNDS or "differs, few rounds" in claims:
        yield (
            f"differs, few rounds: {apart} lies beyond \N{MULTIPLICATION SIGN}"
            f"{FEW_ROUNDS_MARGIN:g}, for fewer than {CLAIM_ROUNDS} rounds that have the figure "
            f"hardly show how rounds differ (use --rounds {CLAIM_ROUNDS} or more)"
        )


def _samples_needed(percent: float | None) -> int:
    """Return how many samples a claim about a percentile, or a rate (None), needs on each side."""
    beyond = 0.0 if percent is None else CLAIM_BEYOND / (1 - percent / 100)
    return max(CLAIM_SAMPLES, round(beyond))


def _subjects(entrants: Sequence[Entrant]) -> list[tuple[_Kind, str]]:
    found: dict[tuple[_Kind, str], None] = {}
    for entrant in entrants:
        found.update(
            {("transaction", each.name): None for each in entrant.summary.overall.transactions}
        )
    for entrant in entrants:
        found.update({("op", op): None for op in _ops(entrant)})
    return list(found)


def _ops(entrant: Entrant) -> Iterator[str]:
    """Yield the ops that have figures of their own.

    Where transactions ran in turn: those of one transaction alone, and not all of it.
    """
    overall = entrant.summary.overall
    shared = Counter(op.op for found in overall.transactions for op in found.ops)
    whole = {found.ops[0].op for found in overall.transactions if len(found.ops) == 1}
    for op in overall.ops:
        if entrant.order == "together" or (shared[op.op] == 1 and op.op not in whole):
            yield op.op


def _figures(entrant: Entrant, kind: _Kind, name: str) -> _Figures | None:
    whole = _entry(entrant.summary.overall, kind, name)
    if whole is None:
        return None
    each = (_entry(part, kind, name) for part in entrant.summary.rounds)
    found = entrant.distributions.get((entrant.summary.index, kind, name))
    percents = [figure.percent for figure in FIGURES]
    return _Figures(
        label=entrant.label,
        count=whole.count,
        samples=_times(whole).count,
        values=_values(whole),
        rounds=tuple(_values(entry) for entry in each if entry is not None),
        resampled=None if found is None else resample(found, percents, entrant.seed),
    )


def _values(entry: _Entry) -> _Values:
    return tuple(figure.of(entry) for figure in FIGURES)


def _entry(part: RoundSummary, kind: _Kind, name: str) -> _Entry | None:
    if kind == "transaction":
        return next((found for found in part.transactions if found.name == name), None)
    return next((found for found in part.ops if found.op == name), None)


def _compared(found: Sequence[_Figures], place: int) -> tuple[Standing, ...]:
    valued = [(value, each) for each in found if (value := each.values[place]) is not None]
    valued.sort(key=lambda item: item[0], reverse=FIGURES[place].better == "higher")
    return tuple(_standing(value, each, valued[0], place) for value, each in valued)


def _standing(value: float, own: _Figures, best: tuple[float, _Figures], place: int) -> Standing:
    rounds = _rounds(own, place)
    ratio = value / best[0] if best[0] else 1.0
    interval = None
    if own is not best[1] and own.resampled is not None and best[1].resampled is not None:
        interval = ratio_interval(own.resampled, best[1].resampled, place, ratio)
    several = len(rounds) > 1
    return Standing(
        label=own.label,
        value=value,
        ratio=ratio,
        ratio_low=None if interval is None else interval.low,
        ratio_high=None if interval is None else interval.high,
        low=min(rounds) if several else None,
        high=max(rounds) if several else None,
        claim="best" if own is best[1] else _claim(own, best[1], place, interval),
    )


def lie_apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether all of one lie beyond all of the other."""
    return max(one) < min(other) or max(other) < min(one)


def _claim(own: _Figures, best: _Figures, place: int, interval: Interval | None) -> Claim:
    """Say whether what was measured shows a difference from the best."""
    ours, others = _rounds(own, place), _rounds(best, place)
    fewest = min(len(ours), len(others))
    few = min(own.samples, best.samples) < _samples_needed(FIGURES[place].percent)
    if interval is None or few or not fewest:
        return "no difference shown"
    margin = 1.0 if fewest >= CLAIM_ROUNDS else FEW_ROUNDS_MARGIN
    beyond = interval.low > margin or interval.high < 1 / margin
    if not (beyond and lie_apart(ours, others)):
        return "no difference shown"
    return "differs" if fewest >= CLAIM_ROUNDS else "differs, few rounds"


def _rounds(figures: _Figures, place: int) -> list[float]:
    """Return a figure of each round in which there were samples enough for it."""
    return [found for values in figures.rounds if (found := values[place]) is not None]
