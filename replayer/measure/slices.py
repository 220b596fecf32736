"""A run's histograms apart by time, and several distributions as one mixture.

This is a second reading of ``histograms.hlog``, for heat maps and resampling. Bins are coarser than
the histograms' own, so figures of a run never come from them. Counts are added exactly. A
``Mixture`` gives each distribution a share; a percentile is what it would be with these shares.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replayer.measure.histogram import Histogram
from replayer.measure.hlog import Batch, Key, read_batches
from replayer.measure.summary import samples_needed

__all__ = ["BINS_PER_OCTAVE", "Mixture", "Slices", "bin_ns", "read_slices"]


BINS_PER_OCTAVE = 64
"""Chosen: a bin is 1.1 % wide, finer than any confidence interval that is made from it."""

_ROUNDED_S = 0.0015  # the log has its times in milliseconds, the timeline in microseconds
_OCTAVES = 47  # up to 2**47 ns, 39 hours: a histogram ends at 24 hours
BINS = BINS_PER_OCTAVE * _OCTAVES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slices:
    """One key's counts, as triples of slot, bin and count.

    Attributes:
        slots: int64: which time slot, counted from 0.
        bins: int64: which latency bin, see ``bin_ns``.
        counts: int64: at least 1 each.
    """

    slots: Integers
    bins: Integers
    counts: Integers

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


def read_slices(path: Path, begins_s: Floats, wanted: Callable[[Key], bool]) -> dict[Key, Slices]:
    """Read a log, keeping its intervals apart in slots of that width; damaged lines are left out.

    Args:
        path: A ``histograms.hlog``.
        begins_s: When each slot begins, ascending; an interval belongs to that in which it began.
        wanted: Which keys to keep.
    """
    parts: dict[Key, list[Slices]] = {}
    for batch in read_batches(path, wanted):
        for key, part in _sliced(batch, begins_s):
            found = parts.setdefault(key, [])
            found.append(part)
            if len(found) >= _MOST_PARTS:
                parts[key] = [_joined(found)]
    return {key: _joined(found) for key, found in parts.items()}


_MOST_PARTS = 64  # chosen: bounds what is held twice while reading


def _sliced(batch: Batch, begins_s: Floats) -> Iterator[tuple[Key, Slices]]:
    """Yield what a batch holds of each of its keys."""
    found = batch.counts
    values = np.maximum(found.layout.highest(found.indices), 1).astype(np.float64)
    bins = np.minimum((np.log2(values) * BINS_PER_OCTAVE).astype(np.int64), BINS - 1)
    starts = np.array([span.start_s for span in batch.spans]) + _ROUNDED_S
    places = np.searchsorted(begins_s, starts, side="right") - 1
    slots = np.maximum(places, 0).astype(np.int64)[found.owners]
    numbers: dict[Key, int] = {}
    owners = np.array([numbers.setdefault(key, len(numbers)) for key in batch.keys], np.int64)
    order = np.argsort(owners[found.owners], kind="stable")
    edges = np.searchsorted(owners[found.owners][order], np.arange(len(numbers) + 1))
    for key, number in numbers.items():
        chosen = order[edges[number] : edges[number + 1]]
        yield key, Slices(slots[chosen], bins[chosen], found.counts[chosen])


def _joined(parts: list[Slices]) -> Slices:
    places = np.concatenate([part.slots * BINS + part.bins for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    kept, inverse = np.unique(places, return_inverse=True)
    sums = np.bincount(inverse, weights=counts, minlength=kept.size).astype(np.int64)
    return Slices(kept // BINS, kept % BINS, sums)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Distributions and the share of each; empty ones leave theirs to the others.

    Attributes:
        parts: The distributions.
        shares: As long as ``parts``, above 0; they need not add up to 1.
    """

    parts: Sequence[Histogram]
    shares: Sequence[float]

    @property
    def count(self) -> int:
        """How many equally weighted samples tell as much: Kish, 'Survey Sampling' (1965)."""
        found = self._filled()
        spread = sum(share**2 / part.count for part, share in found)
        return round(sum(share for _, share in found) ** 2 / spread) if found else 0

    def percentile(self, percent: float) -> int | None:
        """Return the value that so many of the mix do not exceed; None: too few samples."""
        found = self._filled()
        if not found or self.count < samples_needed(percent):
            return None
        values = np.concatenate([part.layout.highest(part.indices) for part, _ in found])
        weights = np.concatenate([share * part.counts / part.count for part, share in found])
        order = np.argsort(values, kind="stable")
        sums = np.cumsum(weights[order])
        # As in a histogram, one part in 10^12 is taken off, so that a float's last bit decides not.
        rank = percent / 100 * float(sums[-1]) * (1 - 1e-12)
        return int(values[order][min(int(np.searchsorted(sums, rank)), order.size - 1)])

    def _filled(self) -> list[tuple[Histogram, float]]:
        pairs = zip(self.parts, self.shares, strict=True)
        return [(part, share) for part, share in pairs if part.count]
