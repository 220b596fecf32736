"""What ``histograms.hlog`` holds, added up per key, or apart by time.

``replayer._native`` reads and writes the file; the parts of its tags become keys here. Bins of
slices are coarser than the histograms' own, so figures of a run never come from them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from replayer import _native
from replayer._native import Histogram, Row

Phase = Literal["warm-up", "measured", "alone"]
"""alone: one target of a duet without the other."""
PHASES: tuple[Phase, ...] = get_args(Phase)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, order=True)
class Segment:
    """One phase of one round on one target."""

    target: int
    round: int
    phase: Phase


CANCELLED = "cancelled"
"""Broken off when its turn ended: how long it would have taken nobody knows."""
FOUND_END = "END"
"""A call that moves data went well and moved none, as it was at the end: it succeeded, and its time
is not one of moving data."""
UNTIMED_OUTCOMES = frozenset({CANCELLED, FOUND_END})
"""What ended so is in no figure of times, even where it was expected."""


@dataclass(frozen=True, order=True)
class Key:
    """What one histogram is of."""

    segment: Segment
    transaction: str
    op: str
    outcome: str
    expected: bool

    @property
    def is_timed(self) -> bool:
        """Whether its times are those of what succeeded; finding an end is no reading."""
        return self.expected and self.outcome not in UNTIMED_OUTCOMES


def row_of(key: Key, moved: int, times: Histogram) -> Row:
    """Return a row as recordings have it: a key, its bytes and its times."""
    place = (key.segment.target, key.segment.round, key.segment.phase)
    return Row(*place, key.transaction, key.op, key.outcome, key.expected, moved, times)


def _key(row: Row) -> Key:
    segment = Segment(row.target, row.round, row.phase)
    return Key(segment, row.transaction, row.op, row.outcome, row.expected)


@dataclass(frozen=True, order=True)
class Span:
    """From when to when, in seconds since the engine's begin."""

    start_s: float
    end_s: float

    def joined(self, other: "Span") -> "Span":
        """Return the span from the earlier start to the later end."""
        return Span(min(self.start_s, other.start_s), max(self.end_s, other.end_s))


@dataclass(frozen=True)
class Log:
    """Everything a log holds, added up."""

    histograms: dict[Key, Histogram]
    """One per key, over all intervals."""
    spans: dict[Segment, Span]
    """When each segment was recorded."""
    damaged: int
    """Lines that were cut short or are not readable."""
    intervals: dict[tuple[Segment, str], frozenset[Span]] = field(default_factory=dict)
    """When each transaction of a segment was recorded."""


def read_log(path: Path) -> Log:
    """Read a log and add up its intervals; one that is missing holds nothing."""
    rows, recorded, damaged = _native.read_log(path)
    intervals = {
        (Segment(target, number, phase), transaction): frozenset(Span(*each) for each in spans)
        for target, number, phase, transaction, spans in recorded
    }
    whole: dict[Segment, Span] = {}
    for (segment, _), spans in intervals.items():
        whole[segment] = reduce(Span.joined, spans, whole.get(segment, next(iter(spans))))
    return Log(
        histograms={_key(row): row.histogram for row in rows},
        spans=whole,
        damaged=damaged,
        intervals=intervals,
    )


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Join spans that touch or overlap, in order."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start_s <= joined[-1].end_s:
            joined[-1] = joined[-1].joined(span)
        else:
            joined.append(span)
    return joined


def covered_s(spans: Iterable[Span]) -> float:
    """Return how many seconds lie in at least one of the spans."""
    return sum((span.end_s - span.start_s for span in join_spans(spans)), 0.0)


BINS_PER_OCTAVE = 64
"""Chosen: a bin is 1.1 % wide, finer than any confidence interval that is made from it."""
BINS = BINS_PER_OCTAVE * 47
"""Up to 2**47 ns, 39 hours: a histogram ends at 24 hours."""


@dataclass(frozen=True, eq=False)
class Slices:
    """One key's counts, as triples of slot, bin and count."""

    slots: Integers
    """int64: which time slot, counted from 0."""
    bins: Integers
    """int64: which latency bin, see ``bin_ns``."""
    counts: Integers
    """int64: at least 1 each."""

    def table(self, slots: int, bins: Integers) -> Floats:
        """Return counts as a table: a row for each slot, a column for each of the (sorted) bins."""
        columns = np.searchsorted(bins, self.bins)
        columns = np.minimum(columns, max(bins.size - 1, 0))
        kept = (self.slots < slots) & (bins[columns] == self.bins)
        found = np.zeros((slots, bins.size))
        np.add.at(found, (self.slots[kept], columns[kept]), self.counts[kept])
        return found


def bin_ns(bins: Integers) -> Floats:
    """Return the middle of each bin in nanoseconds, on the logarithmic scale."""
    middles: Floats = 2.0 ** ((bins + 0.5) / BINS_PER_OCTAVE)
    return middles


def read_slices(path: Path, begins_s: Floats, keys: Sequence[Key]) -> dict[Key, Slices]:
    """Read intervals of a log into slots, by their begin; damaged lines are left out.

    ``begins_s`` ascends.
    """
    rows = [row_of(key, 0, Histogram()) for key in keys]
    found = _native.read_slices(path, begins_s.tolist(), (BINS_PER_OCTAVE, BINS), rows)
    return {
        key: Slices(*(np.frombuffer(column, np.int64) for column in columns))
        for key, columns in zip(keys, found, strict=True)
    }
