"""Two groups of times with a gap between them: what came from a cache, and what did not.

The density is taken on a logarithmic scale, smoothed, and searched for the deepest valley. The
target's guarantee says what lies behind the slow group.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.finding import Modes
from replayer.analysis.works import Work
from replayer.measure import Histogram
from replayer.ops import STORING, names_where

Floats = NDArray[np.float64]

BINS_PER_OCTAVE = 8  # chosen: 9 % a bin
SMOOTH_BINS = 2.0  # chosen: standard deviation of the kernel, a quarter octave
LEAST_DISTANCE = 4.0  # chosen: between the two peaks; nearer ones are often sizes, not places
DEEPEST = 0.3  # chosen: the valley holds at most this part of the lower peak
LEAST_SHARE = 0.03  # chosen: of the smaller group
LEAST_SAMPLES = 50  # chosen: of the smaller group
CRITICAL = 8.0  # chosen: standard deviations between the lower peak and the valley


@dataclass(frozen=True)
class Split:
    """Two groups: the bottom of the valley, the median on each side, the share of the fast one."""

    gap_ns: float
    fast_ns: int
    slow_ns: int
    fast_share: float


def find_split(histogram: Histogram) -> Split | None:
    """Return the two groups of a histogram; None if it has one, or more samples are needed."""
    if histogram.count < 2 * LEAST_SAMPLES:
        return None
    values = np.maximum(histogram.layout.highest(histogram.indices), 1).astype(np.float64)
    bins = np.floor(np.log2(values) * BINS_PER_OCTAVE).astype(np.int64)
    low = int(bins.min())
    heights = np.bincount(bins - low, weights=histogram.counts).astype(np.float64)
    valley = _valley(_smoothed(heights))
    if valley is None:
        return None
    # The valley's middle bin belongs to the slow group.
    gap = 2.0 ** ((valley + low) / BINS_PER_OCTAVE)
    return _split(histogram, values, gap)


def _split(histogram: Histogram, values: Floats, gap: float) -> Split | None:
    fast = values < gap
    parts = [
        Histogram(histogram.layout, histogram.indices[chosen], histogram.counts[chosen])
        for chosen in (fast, ~fast)
    ]
    counts = [part.count for part in parts]
    if min(counts) < max(LEAST_SAMPLES, LEAST_SHARE * histogram.count):
        return None
    middles = [part.percentile(50) for part in parts]
    if middles[1] < LEAST_DISTANCE * max(middles[0], 1):
        return None
    return Split(gap, middles[0], middles[1], counts[0] / histogram.count)


def _smoothed(heights: Floats) -> Floats:
    """Return the heights under a Gaussian kernel, with room for it on both sides kept out."""
    reach = np.arange(-4 * int(SMOOTH_BINS), 4 * int(SMOOTH_BINS) + 1)
    kernel = np.exp(-0.5 * (reach / SMOOTH_BINS) ** 2)
    padded = np.pad(heights, reach.size // 2)
    found: Floats = np.convolve(padded, kernel, mode="valid")
    return found


def _valley(heights: Floats) -> int | None:
    """Return the bottom of the valley between the two peaks that it parts most clearly."""
    before = np.maximum.accumulate(heights)
    after = np.maximum.accumulate(heights[::-1])[::-1]
    lower = np.minimum(before, after)
    deep = heights <= DEEPEST * lower
    certain = lower - heights >= CRITICAL * np.sqrt(np.maximum(lower + heights, 1.0))
    found = np.flatnonzero(deep & certain)
    if not found.size:
        return None
    # The most samples are told apart where the lower of the two peaks is highest.
    best = found[lower[found] >= lower[found].max()]
    bottom = best[heights[best] <= heights[best].min()]
    return int(bottom[bottom.size // 2])


MEMORY_NS = 20_000  # chosen: a call that the client's memory answers takes at most that long
CACHED_OPS = names_where(lambda op: "cached" in op.flags)
BEHIND = {"server": "the server", "device": "the device", "daemon": "the daemon"}


def find_modes(works: Iterable[Work]) -> Iterator[Modes]:
    """Yield the work whose times form two groups."""
    for work in works:
        split = find_split(work.histogram)
        if split is not None:
            yield Modes(
                target=work.target.name,
                subject=work.subject,
                kind=work.kind,
                transaction=work.transaction,
                fast_ns=split.fast_ns,
                slow_ns=split.slow_ns,
                gap_ns=split.gap_ns,
                fast_share=split.fast_share,
                reading=_reading(work, split),
            )


def _reading(work: Work, split: Split) -> str | None:
    """Say what the groups usually are, where the op can be answered from a cache.

    An open of a transaction that writes may make its file, which no cache answers.
    """
    behind = BEHIND.get(work.target.guarantee.fsync)
    makes = work.subject == "open" and not work.beside.isdisjoint(STORING)
    if behind is None or work.subject not in CACHED_OPS or work.kind == "transaction" or makes:
        return None
    if split.fast_ns <= MEMORY_NS < split.slow_ns:
        return f"as fast as this client's memory, and as slow as {behind}"
    return None
