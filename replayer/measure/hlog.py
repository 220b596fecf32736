"""Reading ``histograms.hlog``: the standard HdrHistogram log that an engine appends to.

A log whose writer was killed ends in the middle of a line: what is whole is read, what is not is
counted. Nothing is written here. Format: HdrHistogram's HistogramLogWriter.java, version 1.3; tags
as the engine writes them, ``target/round/phase/transaction/op/outcome/expected``.
"""

import base64
import binascii
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import numpy as np

from replayer.measure.histogram import Counts, Histogram, expand

__all__ = [
    "Batch",
    "Key",
    "Log",
    "Segment",
    "Span",
    "covered_s",
    "join_spans",
    "read_batches",
    "read_log",
]

Phase = Literal["warm-up", "measured"]

_CHUNK = 4096  # lines decoded at once: chosen, some megabytes
_LINE_LIMIT = 1 << 20  # bytes: the longest histogram in base64 is below 800 kB
_LEGEND = b'"StartTimestamp"'


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
    """Everything a log holds, added up.

    Attributes:
        histograms: One per key, over all intervals.
        spans: When each segment was recorded.
        intervals: When each transaction of a segment was recorded.
        damaged: Lines that were cut short or are not readable.
    """

    histograms: dict[Key, Histogram]
    spans: dict[Segment, Span]
    damaged: int
    intervals: dict[tuple[Segment, str], frozenset[Span]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Line:
    key: Key
    span: Span
    blob: bytes


@dataclass
class _Sums:
    """What has been read so far."""

    parts: dict[Key, list[Histogram]] = field(default_factory=dict)
    spans: dict[Segment, Span] = field(default_factory=dict)
    intervals: dict[tuple[Segment, str], set[Span]] = field(
        default_factory=lambda: defaultdict(set)
    )
    damaged: int = 0

    def take(self, lines: list[_Line]) -> None:
        """Decode lines together, or one by one where one of them is damaged."""
        try:
            self._add(lines, expand([line.blob for line in lines]))
        except ValueError:
            if len(lines) == 1:
                self.damaged += 1
                return
            for line in lines:
                self.take([line])

    def _add(self, lines: list[_Line], found: Counts) -> None:
        # One key's histograms of a chunk are added in one step: owners become numbers of keys.
        numbers: dict[Key, int] = {}
        places = [numbers.setdefault(line.key, len(numbers)) for line in lines]
        key_of_line = np.array(places, np.int16)  # 16 bits are sorted by radix, ten times faster
        owners = key_of_line[found.owners]
        order = np.argsort(owners, kind="stable")
        edges = np.searchsorted(owners[order], np.arange(len(numbers) + 1))
        for key, number in numbers.items():
            chosen = order[edges[number] : edges[number + 1]]
            part = Histogram(found.layout, found.indices[chosen], found.counts[chosen])
            merged = Histogram.merged([*self.parts.get(key, []), part])
            self.parts[key] = [merged]
        for line in lines:
            segment = line.key.segment
            self.spans[segment] = line.span.joined(self.spans.get(segment, line.span))
            self.intervals[segment, line.key.transaction].add(line.span)


def read_log(path: Path) -> Log:
    """Read a log and add up its intervals; one that is missing holds nothing."""
    sums = _Sums()
    if not path.exists():
        return Log({}, {}, 0)
    with path.open("rb") as file:
        lines = (line for line in iter(lambda: file.readline(_LINE_LIMIT), b""))
        while chunk := list(islice(lines, _CHUNK)):
            parsed = [found for found in _parsed(chunk, sums) if found is not None]
            if parsed:
                sums.take(parsed)
    return Log(
        histograms={key: parts[0] for key, parts in sums.parts.items()},
        spans=sums.spans,
        damaged=sums.damaged,
        intervals={key: frozenset(spans) for key, spans in sums.intervals.items()},
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


@dataclass(frozen=True, eq=False)
class Batch:
    """Intervals that were read together.

    Attributes:
        keys: The key of each interval.
        spans: When each was.
        counts: The counts of all of them; owners are places in ``keys``.
    """

    keys: tuple[Key, ...]
    spans: tuple[Span, ...]
    counts: Counts


def read_batches(path: Path, wanted: Callable[[Key], bool]) -> Iterator[Batch]:
    """Yield the wanted intervals; what is damaged is left out, ``read_log`` has counted it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        raws = (raw for raw in iter(lambda: file.readline(_LINE_LIMIT), b""))
        while chunk := list(islice(raws, _CHUNK)):
            parsed = [_parse_line(raw) for raw in chunk if not _says_nothing(raw)]
            yield from _batches([line for line in parsed if line and wanted(line.key)])


def _batches(lines: list[_Line]) -> Iterator[Batch]:
    """Decode lines together, or one by one where one of them is damaged."""
    if not lines:
        return
    try:
        counts = expand([line.blob for line in lines])
    except ValueError:
        if len(lines) > 1:
            for line in lines:
                yield from _batches([line])
        return
    keys, spans = tuple(line.key for line in lines), tuple(line.span for line in lines)
    yield Batch(keys, spans, counts)


def _parsed(chunk: list[bytes], sums: _Sums) -> Iterator[_Line | None]:
    for raw in chunk:
        if _says_nothing(raw):
            continue
        line = _parse_line(raw)
        sums.damaged += line is None
        yield line


def _says_nothing(raw: bytes) -> bool:
    return raw.startswith((b"#", _LEGEND)) or not raw.strip()


def _parse_line(raw: bytes) -> _Line | None:
    """Return one interval of one key, or None for a line that is not whole."""
    if not raw.endswith(b"\n"):
        return None
    try:
        tag, start, length, _, blob = raw.decode().strip().split(",")
        begin = float(start)
        key = _parse_tag(tag.removeprefix("Tag="))
        return _Line(key, Span(begin, begin + float(length)), base64.b64decode(blob, validate=True))
    except (ValueError, binascii.Error):
        return None


@lru_cache(maxsize=_CHUNK)
def _parse_tag(tag: str) -> Key:
    """Split a tag; a transaction's name is percent-encoded where it is not a plain word."""
    target, number, phase, rest = tag.split("/", 3)
    name, op, outcome, expected = rest.rsplit("/", 3)
    if phase not in {"warm-up", "measured"} or expected not in {"expected", "unexpected"}:
        message = f"no such tag: {tag}"
        raise ValueError(message)
    segment = Segment(int(target), int(number), "measured" if phase == "measured" else "warm-up")
    return Key(segment, unquote(name), op, outcome, expected == "expected")
