"""A run over time: the mean latency per interval, and the distribution in each slot.

Steps, drift and first touches are searched for in the interval series. Failed and cut-off calls are
left out. Heat maps and resampling use the distributions. A slot is one interval of the timeline; in
long runs it is several. A percentile of a chart joins as many slots as it needs samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from replayer.measure.hlog import Key, Phase, Segment, Span, bin_ns, join_spans, read_slices
from replayer.measure.record import RunRecord
from replayer.measure.summarise import spans_of
from replayer.measure.timeline import Seconds

LATENCY = "transaction"
SERVICE = "transaction.service"
TIMES = frozenset({LATENCY, SERVICE, "transaction.lag", "event.lag"})
"""The names under which times of transactions and delays, not of ops, are recorded."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kind = Literal["transaction", "op"]

STUMP = 0.3  # chosen: an interval shorter than that part of the usual one is left out


@dataclass(frozen=True, eq=False)
class IntervalSeries:
    """One subject on one target, a value for each interval in which something of it ended.

    The subject is a transaction, or an op over all transactions; where those ran in turn, an op of
    one of them, as TRANSACTION/OP. Times are seconds since the engine's begin.
    """

    target: int
    subject: str
    kind: Kind
    start_s: Floats
    end_s: Floats
    rounds: Integers
    counts: Floats
    means_ns: Floats

    @property
    def lengths_s(self) -> Floats:
        """How much measured time each value stands for: since the value before it."""
        before = np.concatenate([[np.nan], self.end_s[:-1]])
        new = np.concatenate([[True], self.rounds[1:] != self.rounds[:-1]])
        lengths: Floats = self.end_s - np.where(new, self.start_s, before)
        return lengths

    @property
    def time_ns(self) -> float:
        """All the time that was spent in it."""
        return float(self.counts @ self.means_ns)

    def kept(self, chosen: NDArray[np.bool_]) -> "IntervalSeries":
        """Return the chosen intervals only."""
        columns = ("start_s", "end_s", "rounds", "counts", "means_ns")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})


def chart_series(record: RunRecord) -> tuple[IntervalSeries, ...]:
    """Return every series of a run: each target's transactions, then its ops.

    Of jobs of fio that ran in turn, one series of an op would show where the next began, and no
    more.
    """
    keys_of = _in_turn if record.run.load.order == "in turn" else _together
    kept = [
        key for key in sorted(record.seconds) if key.segment.phase == "measured" and key.is_timed
    ]
    found: dict[tuple[int, Kind, str], list[Key]] = {}
    for kind, subject, key in keys_of(kept):
        found.setdefault((key.segment.target, kind, subject), []).append(key)
    order = sorted(found, key=lambda item: (item[0], item[1] == "op"))
    return tuple(
        _without_stumps(
            _joined(target, kind, subject, [(key, record.seconds[key]) for key in keys])
        )
        for target, kind, subject in order
        for keys in [found[target, kind, subject]]
    )


def leading(series: Sequence[IntervalSeries]) -> Iterator[IntervalSeries]:
    """Yield the transactions; of a target without any, its ops."""
    led = {one.target for one in series if one.kind == "transaction"}
    yield from (one for one in series if one.kind == "transaction" or one.target not in led)


def _together(keys: Sequence[Key]) -> Iterator[tuple[Kind, str, Key]]:
    for key in keys:
        if key.op == LATENCY:
            yield "transaction", key.transaction, key
        elif key.op not in TIMES:
            yield "op", key.op, key


def _in_turn(keys: Sequence[Key]) -> Iterator[tuple[Kind, str, Key]]:
    """Yield each transaction's ops; a transaction with a single op stands for that op."""
    made: dict[tuple[int, str], set[str]] = {}
    for key in keys:
        if key.op not in TIMES:
            made.setdefault((key.segment.target, key.transaction), set()).add(key.op)
    for kind, subject, key in _together(keys):
        if kind == "transaction":
            yield kind, subject, key
        elif len(made[key.segment.target, key.transaction]) > 1:
            yield kind, f"{key.transaction}/{subject}", key


def _joined(
    target: int, kind: Kind, subject: str, parts: list[tuple[Key, Seconds]]
) -> IntervalSeries:
    """Add up the rows of one interval: all keys of it have the same begin."""
    starts = np.concatenate([part.start_s for _, part in parts])
    ends = np.concatenate([part.end_s for _, part in parts])
    counts = np.concatenate([part.count for _, part in parts])
    means = np.concatenate([part.mean_ns for _, part in parts])
    rounds = np.concatenate([np.full(part.count.size, key.segment.round) for key, part in parts])
    kept, first, place = np.unique(starts, return_index=True, return_inverse=True)
    sums = np.bincount(place, weights=counts, minlength=kept.size).astype(np.float64)
    times = np.bincount(place, weights=counts * means, minlength=kept.size).astype(np.float64)
    return IntervalSeries(
        target=target,
        subject=subject,
        kind=kind,
        start_s=kept,
        end_s=ends[first],
        rounds=rounds[first].astype(np.int64),
        counts=sums,
        means_ns=np.maximum(times / np.maximum(sums, 1), 1.0),
    )


def _without_stumps(series: IntervalSeries) -> IntervalSeries:
    """Leave out the short intervals at the ends of rounds: their means are those of few calls."""
    lengths = series.end_s - series.start_s
    if not lengths.size:
        return series
    return series.kept(lengths >= STUMP * float(np.median(lengths)))


MOST_SLOTS = 240  # of a target: chosen, more than a picture is wide

Subject = tuple[int, Kind, str]
"""A target's index, transaction or op, and its name."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Measured time, in order: begins on the run's clock, and lengths with the silence before."""

    begins_s: Floats
    lengths_s: Floats
    targets: Integers
    rounds: Integers

    def of(self, target: int) -> "Slots":
        """Return those of one target."""
        own = self.targets == target
        return Slots(self.begins_s[own], self.lengths_s[own], self.targets[own], self.rounds[own])


@dataclass(frozen=True, eq=False)
class Distribution:
    """How often one subject took how long, in each slot of its target.

    ``own_s`` is how much of each slot it ran: less than all where transactions ran in turn. The
    table has a row for each slot and a column for each bin, whose middles are ``bins_ns``.
    """

    slots: Slots
    own_s: Floats
    bins_ns: Floats
    table: Floats


@dataclass
class Widening:
    """Joins slots that follow each other until they hold as many samples as are needed."""

    needed: int
    _begin: int | None = None
    _held: float = 0

    def add(self, place: int, count: float) -> range | None:
        """Take the next slot; return the places that are joined, once they hold enough."""
        if self._begin is None and not count:
            return None  # silence before the first sample belongs to no slot
        self._begin = place if self._begin is None else self._begin
        self._held += count
        if self._held < self.needed:
            return None
        joined = range(self._begin, place + 1)
        self.cut()
        return joined

    def cut(self) -> None:
        """Leave out what has too few samples: another turn begins."""
        self._begin, self._held = None, 0


def read_distributions(record: RunRecord, phase: Phase = "measured") -> dict[Subject, Distribution]:
    """Read the distributions of all transactions and ops of a run, successful calls only."""
    slots = cut_slots(record, phase)
    wanted: dict[int, list[Key]] = {}
    for key in sorted(record.log.histograms):
        if _is_wanted(key, phase):
            wanted.setdefault(key.segment.target, []).append(key)
    distributions: dict[Subject, Distribution] = {}
    for target, keys in wanted.items():
        mine = slots.of(target)
        if mine.begins_s.size:  # else its timeline is lost: no time to tell its calls apart by
            distributions.update(_read_target(record, mine, keys))
    return distributions


def _read_target(
    record: RunRecord, slots: Slots, wanted: Sequence[Key]
) -> Iterator[tuple[Subject, Distribution]]:
    """Read those of one target: at the same time others may have slots of their own."""
    found = read_slices(record.folder / "histograms.hlog", slots.begins_s, wanted)
    groups: dict[Subject, list[Key]] = {}
    for key in wanted:
        kind: Kind = "transaction" if key.op == LATENCY else "op"
        name = key.transaction if kind == "transaction" else key.op
        groups.setdefault((key.segment.target, kind, name), []).append(key)
    for subject, keys in groups.items():
        bins = np.unique(np.concatenate([found[key].bins for key in keys]))
        table = np.sum([found[key].table(slots.begins_s.size, bins) for key in keys], axis=0)
        parts = {(key.transaction, None if key.op == LATENCY else key.op) for key in keys}
        own_s = _own_s(record, subject[0], parts, slots)
        yield subject, Distribution(slots, own_s, bin_ns(bins), table)


def cut_slots(record: RunRecord, phase: Phase = "measured") -> Slots:
    """Cut the measured time of a run into about ``MOST_SLOTS`` slots a target, at most.

    Those of a duet are the same for both targets.
    """
    stretches = list(_stretches(record, phase))
    rows: list[tuple[float, float, int, int]] = []
    for segment, start_s, own in stretches:
        number = sum(ends.size for other, _, ends in stretches if other.target == segment.target)
        step = -(-number // MOST_SLOTS)
        kept = _without_stump(np.unique(np.append(own[step - 1 :: step], own[-1])))
        begins = np.concatenate([[start_s], kept[:-1]])
        rows += [
            (float(begin), float(end), segment.target, segment.round)
            for begin, end in zip(begins, kept, strict=True)
        ]
    table = np.array(sorted(rows), np.float64).reshape(-1, 4)
    return Slots(
        begins_s=table[:, 0],
        lengths_s=np.maximum(table[:, 1] - table[:, 0], _INSTANT_S),
        targets=table[:, 2].astype(np.int64),
        rounds=table[:, 3].astype(np.int64),
    )


def _without_stump(ends: Floats) -> Floats:
    """Join a short last slot to the one before it: its figures are those of few calls."""
    if ends.size < 3:  # noqa: PLR2004 - no usual length is known
        return ends
    lengths = np.diff(ends)
    return np.delete(ends, -2) if lengths[-1] < STUMP * float(np.median(lengths)) else ends


_INSTANT_S = 1e-6  # the timeline's resolution


def _stretches(record: RunRecord, phase: Phase) -> Iterator[tuple[Segment, float, Floats]]:
    """Yield the stretches of measured time: whose, its begin, and when its intervals ended.

    A segment is one of them. Where transactions ran in turn, other targets had theirs in between,
    and each turn is one.
    """
    for segment, parts in sorted(_seconds_of(record, phase).items()):
        ends = np.unique(np.concatenate([part.end_s for part in parts])).astype(np.float64)
        if record.run.load.order == "together":
            yield segment, record.spans[segment].start_s, ends
        else:
            bounds = (zip(each.start_s, each.end_s, strict=True) for each in parts)
            for turn in join_spans(Span(*map(float, pair)) for each in bounds for pair in each):
                inside = (ends > turn.start_s) & (ends <= turn.end_s)
                if inside.any():
                    yield segment, turn.start_s, ends[inside]


def _seconds_of(record: RunRecord, phase: Phase) -> dict[Segment, list[Seconds]]:
    """Return the intervals of each segment: both targets of a duet have those of both."""
    found: dict[Segment, list[Seconds]] = {}
    for key, seconds in record.seconds.items():
        if key.segment.phase == phase and seconds.end_s.size:
            found.setdefault(key.segment, []).append(seconds)
    if not record.run.load.duet or phase != "measured":
        return found
    rounds: dict[int, list[Seconds]] = {}
    for segment, parts in found.items():
        rounds.setdefault(segment.round, []).extend(parts)
    return {segment: rounds[segment.round] for segment in found}


def _own_s(
    record: RunRecord, target: int, parts: set[tuple[str, str | None]], slots: Slots
) -> Floats:
    """Return how much of each slot of a target a transaction, or an op of it, ran there."""
    if record.run.load.order == "together":
        return slots.lengths_s
    own = join_spans(
        span
        for segment in record.log.spans
        if segment.target == target and segment.phase == "measured"
        for name, op in parts
        for span in spans_of(record, segment, name, op)
    )
    ends_s, found = slots.begins_s + slots.lengths_s, np.zeros(slots.begins_s.size)
    for span in own:
        shared = np.minimum(ends_s, span.end_s) - np.maximum(slots.begins_s, span.start_s)
        found += np.where(shared > _INSTANT_S, shared, 0.0)
    return found


def _is_wanted(key: Key, phase: Phase) -> bool:
    timed = key.op == LATENCY or key.op not in TIMES
    return timed and key.segment.phase == phase and key.is_timed
