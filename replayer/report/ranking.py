"""Ranking: each figure of all contenders with its ratio to the best and an interval.

Values come from the full histograms, intervals from resampling. ``claims`` decides which difference
is claimed. ``rank`` is for the targets of one run; ``compare`` uses ``rank_entrants`` for several.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from replayer._native import Histogram
from replayer.analysis.resampling import Draw, Mixture, Resampled, resample, resample_mixture
from replayer.analysis.slots import Distribution, Subject, read_distributions
from replayer.measure.mix import has_think_time
from replayer.measure.record import RunRecord
from replayer.measure.run import Target
from replayer.measure.summarise import latencies_of
from replayer.measure.summary import (
    Performance,
    RoundSummary,
    Statistics,
    Summary,
    TargetSummary,
    TransactionSummary,
    samples_needed,
)
from replayer.report.claims import Evidence, has_samples, judge_difference
from replayer.report.document import (
    Claim,
    ComparedFigure,
    ComparisonRow,
    Lacking,
    PooledFigures,
    Unranked,
)
from replayer.report.duet import why_not_compared

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


def times_of(entry: _Entry) -> Statistics:
    """Return the times of a transaction, or of an op."""
    return entry.latency if isinstance(entry, TransactionSummary) else entry.time


FIGURES = (
    FigureKind("p50", "ns", "lower", 50.0, lambda entry: times_of(entry).p50_ns),
    FigureKind("p95", "ns", "lower", 95.0, lambda entry: times_of(entry).p95_ns),
    FigureKind("p99", "ns", "lower", 99.0, lambda entry: times_of(entry).p99_ns),
    FigureKind("throughput", "per_s", "higher", None, lambda entry: entry.throughput_per_s),
)
_PERCENTS = tuple(figure.percent for figure in FIGURES)
ALL = "all transactions"
_OF_OPS = range(2)  # p50 and p95


@dataclass(frozen=True)
class Side:
    """One contender, before anything is compared."""

    label: str
    record: RunRecord
    target: Target


@dataclass(frozen=True, eq=False)
class Entrant:
    """A contender with what was measured.

    ``latencies`` are of transactions that succeeded, by name and round, ``distributions`` of all
    targets of its run.
    """

    label: str
    summary: TargetSummary
    latencies: Mapping[tuple[str, int], Histogram]
    distributions: Mapping[Subject, Distribution]
    draw: Draw
    order: Order
    thinks: bool
    """Whether its users wait between transactions."""
    looks: int = 1
    """How often its run could have ended by what was measured until then."""

    def succeeded(self, transaction: str, part: RoundSummary) -> Histogram:
        """Return the latencies of one transaction in one round, or in all of them."""
        return Histogram.merged(
            found
            for (name, number), found in self.latencies.items()
            if name == transaction and part.number in {None, number}
        )


def entrants_of(sides: Sequence[Side], summaries: Mapping[int, Summary]) -> list[Entrant]:
    """Return the contenders with their figures; ``summaries`` are by the identity of the record."""
    records = {id(side.record): side.record for side in sides}
    seeds = {key: place for place, key in enumerate(records)}
    several = len(sides) > 1  # a single one has nobody to compare with: nothing is resampled
    found = {key: read_distributions(record) for key, record in records.items() if several}
    return [
        Entrant(
            label=side.label,
            summary=summaries[id(side.record)].targets[side.target.index],
            latencies=latencies_of(side.record, side.target.index),
            distributions=found.get(id(side.record), {}),
            draw=Draw(seeds[id(side.record)], paired=side.record.run.load.duet),
            order=side.record.run.load.order,
            thinks=has_think_time(side.record.plan),
            looks=side.record.run.load.looks,
        )
        for side in sides
    ]


_Values = tuple[float | None, ...]
"""One for each of FIGURES."""


@dataclass(frozen=True, eq=False)
class _EntrantFigures:
    """One entrant's figures of one subject, over all rounds, in each, and resampled.

    Samples are those that succeeded.
    """

    label: str
    samples: int
    values: _Values
    rounds: tuple[_Values, ...]
    resampled: Resampled | None
    looks: int
    draw: Draw


def _rank_figures(
    entrants: Sequence[Entrant], together: Sequence[_EntrantFigures]
) -> Iterator[ComparedFigure | Unranked]:
    """Yield every figure that at least two entrants have: all together, transactions, then ops.

    Entrants with enough samples are ranked; those with too few are yielded beside them. Where users
    think, the rate of transactions is mostly their own, and ranks nothing.
    """
    thinks = any(entrant.thinks for entrant in entrants)
    places = range(len(FIGURES) - 1 if thinks else len(FIGURES))
    yield from _ranked("all transactions", together, places)
    for kind, name in _subjects(entrants):
        own = [each for entrant in entrants if (each := _figures(entrant, kind, name))]
        yield from _ranked(kind, own, places if kind == "transaction" else _OF_OPS, name)


def find_mix(entrants: Sequence[Entrant]) -> tuple[str, ...]:
    """Return the transactions of which all entrants have some that succeeded.

    None where they ran in turn: those are different work, and together have no figures.
    """
    if any(entrant.order == "in turn" for entrant in entrants):
        return ()
    first, *others = ({name for name, _ in entrant.latencies} for entrant in entrants)
    kept = first.intersection(*others)
    return tuple(
        name for kind, name in _subjects(entrants) if kind == "transaction" and name in kept
    )


def _ranked(
    kind: _AnyKind, found: Sequence[_EntrantFigures], places: Iterable[int], name: str = ALL
) -> Iterator[ComparedFigure | Unranked]:
    if len(found) < 2:  # noqa: PLR2004 - there is nobody to compare with
        return
    for place in places:
        figure, compared = FIGURES[place], _compared(found, place)
        if len(compared) > 1:
            yield ComparedFigure(
                subject=name,
                kind=kind,
                figure=figure.name,
                unit=figure.unit,
                better=figure.better,
                standings=compared,
            )
        lacking = tuple(
            Lacking(label=each.label, samples=each.samples)
            for each in found
            if not _is_ranked(each, place)
        )
        if lacking:
            yield Unranked(subject=name, kind=kind, figure=figure.name, lacking=lacking)


def _is_ranked(figures: _EntrantFigures, place: int) -> bool:
    known = figures.values[place] is not None
    return known and has_samples(_evidence(figures, place), FIGURES[place].percent)


def _together(entrants: Sequence[Entrant], mix: Sequence[str]) -> list[_EntrantFigures]:
    """Return the figures of a mix: each transaction with one share, the same for all entrants.

    It is the mean of the shares that it has with them. So none looks slow for having made, by
    chance or because it is quick at something else, more of what takes long.
    """
    counts = np.array(
        [[each.succeeded(name, each.summary.overall).count for name in mix] for each in entrants]
    )
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    return [_mixed(entrant, dict(zip(mix, shares.tolist(), strict=True))) for entrant in entrants]


def _mixed(entrant: Entrant, shares: Mapping[str, float]) -> _EntrantFigures:
    overall = entrant.summary.overall
    found = [
        part
        for name in shares
        if (part := entrant.distributions.get((entrant.summary.index, "transaction", name)))
    ]
    resampled = (
        resample_mixture(found, [*shares.values()], _PERCENTS, entrant.draw)
        if len(found) == len(shares)
        else None
    )
    return _EntrantFigures(
        label=entrant.label,
        samples=_mixture(entrant, overall, shares).count,
        values=_mixed_values(entrant, overall, shares),
        rounds=tuple(_mixed_values(entrant, part, shares) for part in entrant.summary.rounds),
        resampled=resampled,
        looks=entrant.looks,
        draw=entrant.draw,
    )


def _mixture(entrant: Entrant, part: RoundSummary, shares: Mapping[str, float]) -> Mixture:
    return Mixture([entrant.succeeded(name, part) for name in shares], [*shares.values()])


def _mixed_values(entrant: Entrant, part: RoundSummary, shares: Mapping[str, float]) -> _Values:
    """Return the percentiles of the mix, and the sum of the throughputs."""
    mixture = _mixture(entrant, part, shares)
    rates = [found.throughput_per_s for found in part.transactions if found.name in shares]
    known = [rate for rate in rates if rate is not None]
    return tuple(
        (sum(known) if known else None) if percent is None else mixture.percentile(percent)
        for percent in _PERCENTS
    )


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


def _figures(entrant: Entrant, kind: _Kind, name: str) -> _EntrantFigures | None:
    whole = _entry(entrant.summary.overall, kind, name)
    if whole is None:
        return None
    each = (_entry(part, kind, name) for part in entrant.summary.rounds)
    found = entrant.distributions.get((entrant.summary.index, kind, name))
    return _EntrantFigures(
        label=entrant.label,
        samples=times_of(whole).count,
        values=tuple(figure.of(whole) for figure in FIGURES),
        rounds=tuple(tuple(f.of(entry) for f in FIGURES) for entry in each if entry is not None),
        resampled=None if found is None else resample(found, _PERCENTS, entrant.draw),
        looks=entrant.looks,
        draw=entrant.draw,
    )


def _entry(part: RoundSummary, kind: _Kind, name: str) -> _Entry | None:
    if kind == "transaction":
        return next((found for found in part.transactions if found.name == name), None)
    return next((found for found in part.ops if found.op == name), None)


def _compared(found: Sequence[_EntrantFigures], place: int) -> tuple[ComparisonRow, ...]:
    valued = [
        (value, each)
        for each in found
        if (value := each.values[place]) is not None and _is_ranked(each, place)
    ]
    valued.sort(key=lambda item: item[0], reverse=FIGURES[place].better == "higher")
    return tuple(_standing(each, valued[0], place, len(valued)) for each in valued)


def _standing(
    own: tuple[float, _EntrantFigures],
    best: tuple[float, _EntrantFigures],
    place: int,
    contenders: int,
) -> ComparisonRow:
    value, figures = own
    rounds = _rounds(figures, place)
    ratio = value / best[0] if best[0] else None if value else 1.0
    claim: Claim = "best"
    interval, percent = None, FIGURES[place].percent
    if ratio is None:  # what was seen before it was waited for took no time
        claim = "no ratio to 0"
    elif figures is not best[1]:
        sides = _evidence(figures, place), _evidence(best[1], place)
        claim, interval = judge_difference(*sides, percent, ratio, contenders)
        if not value and percent is not None:  # 0 and 0
            claim, interval = "no difference shown", None
    several = len(rounds) > 1
    return ComparisonRow(
        label=figures.label,
        value=value,
        ratio=ratio,
        ratio_low=None if interval is None else interval.low,
        ratio_high=None if interval is None else interval.high,
        low=min(rounds) if several else None,
        high=max(rounds) if several else None,
        claim=claim,
    )


def _evidence(figures: _EntrantFigures, place: int) -> Evidence:
    found = _rounds(figures, place)
    return Evidence(found, figures.samples, figures.resampled, place, figures.looks, figures.draw)


def _rounds(figures: _EntrantFigures, place: int) -> list[float]:
    """Return a figure of each round in which there were samples enough for it."""
    return [found for values in figures.rounds if (found := values[place]) is not None]


def ratio_between(
    figure: ComparedFigure, own: str, other: str
) -> tuple[float | None, float | None, float | None]:
    """Return how many times another's figure one of two contenders has, with the 95 % interval.

    None: that cannot be said. The ranking has it to the best, whichever of them that is.
    """
    rows = {row.label: row for row in figure.standings}
    one, two = rows[own], rows[other]
    ratio = one.value / two.value if two.value else None
    if figure.standings[0] is two:
        return ratio, one.ratio_low, one.ratio_high
    return ratio, _inverse(two.ratio_high), _inverse(two.ratio_low)


def _inverse(ratio: float | None) -> float | None:
    return 1 / ratio if ratio else None


@dataclass(frozen=True)
class RunRanking:
    """The targets of a run, or of several, beside each other."""

    figures: tuple[ComparedFigure, ...]
    """Each figure that at least two targets have: all together, transactions, then ops."""
    unranked: tuple[Unranked, ...]
    """For which figures targets have too few samples."""
    mix: str
    """What was pooled, in words."""
    pooled: tuple[PooledFigures, ...]
    """Each target's figures of all transactions; none where there is one kind of them, or where
    they ran in turn."""


def rank(record: RunRecord, summary: Summary) -> RunRanking:
    """Rank the targets of a run."""
    sides = [Side(target.name, record, target) for target in record.run.targets]
    found = rank_entrants(entrants_of(sides, {id(record): summary}))
    if why_not_compared(record) is not None:  # what both share decides, and not what they are
        return replace(found, figures=(), unranked=())
    return found


def rank_pairs(record: RunRecord, summary: Summary) -> list[RunRanking]:
    """Rank the two settings of each target; none where no neighbour ran."""
    if record.run.neighbour is None:
        return []
    targets = record.run.targets
    pairs = [(targets[each.alone], targets[each.beside]) for each in record.run.neighbour.pairs]
    return [
        rank_entrants(
            entrants_of([Side(own.name, record, own) for own in pair], {id(record): summary})
        )
        for pair in pairs
    ]


def rank_entrants(entrants: Sequence[Entrant]) -> RunRanking:
    """Rank entrants; of a single one there are only the figures of all its transactions."""
    mix = find_mix(entrants)
    every = {found.name for each in entrants for found in each.summary.overall.transactions}
    together = _together(entrants, mix) if len(mix) > 1 else []
    found = list(_rank_figures(entrants, together)) if len(entrants) > 1 else []
    return RunRanking(
        figures=tuple(each for each in found if isinstance(each, ComparedFigure)),
        unranked=tuple(each for each in found if isinstance(each, Unranked)),
        # What an entrant lacks is left out for all.
        mix="transactions" if len(mix) == len(every) else "transactions that all have",
        pooled=tuple(map(_pooled, together)),
    )


def _pooled(figures: _EntrantFigures) -> PooledFigures:
    shown = [
        value if percent is None or figures.samples >= samples_needed(percent) else None
        for value, percent in zip(figures.values, _PERCENTS, strict=True)
    ]
    p50_ns, p95_ns, p99_ns, rate = shown
    return PooledFigures(
        target=figures.label, p50_ns=p50_ns, p95_ns=p95_ns, p99_ns=p99_ns, throughput_per_s=rate
    )
