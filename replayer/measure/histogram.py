"""HDR histograms of run folders: decoded from compressed V2, added exactly, asked for percentiles.

Nothing is recorded here; the engine does that. Histograms go on to the summary. The form is
specified by HdrHistogram's AbstractHistogram.java (encodeIntoCompressedByteBuffer, V2): cookies,
zlib, ZigZag LEB128 counts.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["EMPTY", "Counts", "Histogram", "Layout", "expand"]

Integers = NDArray[np.int64]

_COOKIE = 0x1C849303
_COMPRESSED_COOKIE = 0x1C849304
_WORD_SIZE_BITS = 0xF0  # the low nibble but one of a cookie says how wide counts were; V2 writes 1
_OUTER = struct.Struct(">ii")
_INNER = struct.Struct(">iiiiqqd")
_PAYLOAD_LIMIT = (
    1 << 20
)  # 64 buckets of 1,024 counts, 9 bytes each, are 590 kB: more is not a histogram
_LONGEST_NUMBER = 8  # bytes of a LEB128 number that holds a count below 2**55
_MOST_DIGITS = 5  # HdrHistogram's own bound


@dataclass(frozen=True)
class Layout:
    """How bucket indices stand for values.

    Attributes:
        unit_magnitude: Values are kept in units of two to this power.
        half_magnitude: Each bucket holds two to this power steps.
    """

    unit_magnitude: int
    half_magnitude: int

    @classmethod
    def of(cls, lowest: int, digits: int) -> Self:
        """Return the layout for that lowest value and that many significant digits."""
        if not 0 <= digits <= _MOST_DIGITS or lowest < 1:
            message = f"not a histogram: lowest value {lowest}, {digits} significant digits"
            raise ValueError(message)
        steps = 2 * 10**digits
        return cls(lowest.bit_length() - 1, max((steps - 1).bit_length(), 1) - 1)

    @property
    def buckets(self) -> int:
        """How many buckets there are below 2**63."""
        return (64 - self.unit_magnitude - self.half_magnitude) << self.half_magnitude

    def shifts(self, indices: Integers) -> Integers:
        """Return the power of two that is the width of each bucket."""
        powers: Integers = np.maximum((indices >> self.half_magnitude) - 1, 0) + self.unit_magnitude
        return powers

    def lowest(self, indices: Integers) -> Integers:
        """Return the lowest value of each bucket."""
        half = 1 << self.half_magnitude
        steps = np.where(indices < half, indices, (indices & (half - 1)) + half)
        found: Integers = steps << self.shifts(indices)
        return found

    def highest(self, indices: Integers) -> Integers:
        """Return the highest value of each bucket."""
        widths: Integers = np.int64(1) << self.shifts(indices)
        return self.lowest(indices) + widths - 1


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of nanoseconds by bucket; only buckets that hold something are kept.

    Attributes:
        layout: What the indices mean.
        indices: int64, ascending, each once.
        counts: int64, at least 1 each, as long as ``indices``.
    """

    layout: Layout
    indices: Integers
    counts: Integers

    @classmethod
    def from_v2(cls, blob: bytes) -> Self:
        """Decode one compressed V2 histogram; a ValueError says what is wrong with it."""
        found = expand([blob])
        return cls(found.layout, *_summed(found.indices, found.counts))

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """Add histograms exactly, as if every sample had been recorded into one.

        Raises:
            ValueError: They were recorded with different precisions.
        """
        filled = [part for part in parts if part.indices.size]
        if not filled:
            return cls(NANOSECONDS, np.empty(0, np.int64), np.empty(0, np.int64))
        layout = filled[0].layout
        if any(part.layout != layout for part in filled):
            message = "histograms of different precision cannot be added"
            raise ValueError(message)
        indices = np.concatenate([part.indices for part in filled])
        return cls(layout, *_summed(indices, np.concatenate([part.counts for part in filled])))

    @property
    def count(self) -> int:
        """How many samples it holds."""
        return int(self.counts.sum())

    @property
    def min(self) -> int:
        """The lowest value of the first bucket that holds a sample; 0 when empty."""
        return int(self.layout.lowest(self.indices[:1])[0]) if self.indices.size else 0

    @property
    def max(self) -> int:
        """The highest value of the last bucket that holds a sample; 0 when empty."""
        return int(self.layout.highest(self.indices[-1:])[0]) if self.indices.size else 0

    @property
    def mean(self) -> float:
        """The mean of the buckets' middles, by sums that no CPU rounds otherwise; 0 when empty."""
        return fsum(self._middles() * self.counts) / self.count if self.indices.size else 0.0

    @property
    def stdev(self) -> float:
        """The standard deviation of the buckets' middles from their mean; 0 when empty."""
        if not self.indices.size:
            return 0.0
        apart = self._middles() - self.mean
        return sqrt(fsum(apart**2 * self.counts) / self.count)

    def percentile(self, percent: float) -> int:
        """Return the highest value equivalent to the sample at that percentile; 0 when empty."""
        if not self.indices.size:
            return 0
        # One part in 10^12 is taken off before rounding up, so that 99.9 % of 1,000 samples is the
        # 999th and not, through the last bit of a float, the 1,000th.
        rank = max(int(np.ceil(percent / 100 * self.count * (1 - 1e-12))), 1)
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        place = min(place, self.indices.size - 1)
        return int(self.layout.highest(self.indices[place : place + 1])[0])

    def _middles(self) -> NDArray[np.float64]:
        # HdrHistogram's medianEquivalentValue: the lowest value plus half a bucket's width.
        widths = np.int64(1) << self.layout.shifts(self.indices)
        return (self.layout.lowest(self.indices) + (widths >> 1)).astype(np.float64)


NANOSECONDS = Layout.of(1, 3)
"""What the engine records with: nanoseconds, three significant digits."""

EMPTY = Histogram.merged([])
"""No samples."""


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of many histograms of one layout, one after another.

    Attributes:
        layout: The layout of them all.
        owners: int64: which blob each count came from.
        indices: int64: the bucket of each count.
        counts: int64: each at least 1.
    """

    layout: Layout
    owners: Integers
    indices: Integers
    counts: Integers


def expand(blobs: Sequence[bytes]) -> Counts:
    """Decode many compressed V2 histograms at once, much faster than one by one.

    Raises:
        ValueError: One of them is damaged, or they differ in precision.
    """
    opened = [_open(blob) for blob in blobs]
    layouts = {layout for layout, _ in opened}
    if len(layouts) != 1:
        message = "histograms of different precision cannot be read together"
        raise ValueError(message)
    lengths = np.array([len(payload) for _, payload in opened], np.int64)
    numbers, ends = _zigzag_numbers(b"".join(payload for _, payload in opened))
    owners = np.repeat(np.arange(lengths.size), lengths)[ends]
    return _placed(layouts.pop(), owners, numbers)


def _open(blob: bytes) -> tuple[Layout, bytes]:
    """Return the layout and the still zigzag-coded counts of one blob."""
    if len(blob) < _OUTER.size or _cookie(blob) != _COMPRESSED_COOKIE:
        message = "not a compressed V2 histogram"
        raise ValueError(message)
    packed = blob[_OUTER.size : _OUTER.size + _OUTER.unpack_from(blob)[1]]
    unpacker = zlib.decompressobj()
    try:
        inner = unpacker.decompress(packed, _PAYLOAD_LIMIT)
    except zlib.error as error:
        message = f"damaged histogram: {error}"
        raise ValueError(message) from error
    if not unpacker.eof or len(inner) < _INNER.size or _cookie(inner) != _COOKIE:
        message = "damaged histogram: cut short, too long or not V2"
        raise ValueError(message)
    _, length, offset, digits, lowest, _, _ = _INNER.unpack_from(inner)
    payload = inner[_INNER.size : _INNER.size + length]
    if offset != 0 or len(payload) != length or payload[-1:] >= b"\x80":
        message = "damaged histogram: the counts do not fit their header"
        raise ValueError(message)
    return Layout.of(lowest, digits), payload


def _cookie(blob: bytes) -> int:
    return int(_OUTER.unpack_from(blob)[0]) & ~_WORD_SIZE_BITS


def _zigzag_numbers(payload: bytes) -> tuple[Integers, Integers]:
    """Decode ZigZag LEB128 numbers; return them with the position of each one's last byte."""
    octets = np.frombuffer(payload, np.uint8).astype(np.int64)
    ends = np.flatnonzero(octets < 0x80)  # noqa: PLR2004 - the bit that says 'more bytes follow'
    if not ends.size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if int((ends - starts).max()) >= _LONGEST_NUMBER:
        message = "damaged histogram: a count of 2^55 or more"
        raise ValueError(message)
    places = np.arange(octets.size) - np.repeat(starts, ends - starts + 1)
    numbers = np.add.reduceat((octets & 0x7F) << (7 * places), starts)
    return (numbers >> 1) ^ -(numbers & 1), ends


def _placed(layout: Layout, owners: Integers, numbers: Integers) -> Counts:
    """Give each count its bucket: a negative number skips that many empty buckets."""
    steps = np.where(numbers < 0, -numbers, 1)
    if int(steps.max(initial=0)) > _PAYLOAD_LIMIT:
        message = "damaged histogram: a gap of more buckets than exist"
        raise ValueError(message)
    places = np.cumsum(steps) - steps
    first = np.flatnonzero(np.diff(owners, prepend=-1))  # of each owner
    indices = places - np.repeat(places[first], np.diff(first, append=owners.size))
    if int(indices.max(initial=0)) >= layout.buckets:
        message = "damaged histogram: a value of 2^63 or more"
        raise ValueError(message)
    kept = numbers > 0
    return Counts(layout, owners[kept], indices[kept], numbers[kept])


def _summed(indices: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Sort buckets and add those that are the same."""
    if not indices.size:
        return indices, counts
    order = np.argsort(indices, kind="stable")
    indices, counts = indices[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], indices[1:] != indices[:-1]]))
    return indices[first], np.add.reduceat(counts, first)
