"""Writing ``histograms.hlog`` and ``timeline.csv`` as the engine writes them, of merged intervals.

The engine writes its own; this is for figures that were added up elsewhere. Reading is next door.
"""

import base64
import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from replayer.measure.hlog import Key, Span
from replayer.measure.timeline import COLUMNS

__all__ = ["Line", "Recording"]

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Line:
    """What was measured of one key in one interval.

    Attributes:
        blob: Its histogram, compressed V2.
        times: mean_ns, p50_ns, p95_ns, p99_ns and max_ns.
    """

    key: Key
    moved_bytes: int
    count: int
    blob: bytes
    times: tuple[float, int, int, int, int]


class Recording:
    """The two files of one run folder, appended to interval by interval.

    Raises:
        OSError: A file cannot be written.
    """

    def __init__(self, folder: Path, begin_epoch_ns: int) -> None:
        self._histograms = folder / "histograms.hlog"
        self._timeline = folder / "timeline.csv"
        seconds, rest_ns = divmod(begin_epoch_ns, NS_PER_S)
        _append(
            self._histograms,
            "#[Histogram log format version 1.3]\n"
            f"#[BaseTime: {seconds}.{rest_ns // NS_PER_MS:03} (seconds since epoch)]\n"
            "#[MaxValueDivisor: 1000000.000]\n"
            '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n',
        )
        _append(self._timeline, ",".join(COLUMNS) + "\n")

    def add(self, span: Span, users: int, lines: Sequence[Line]) -> None:
        """Append an interval: one write for each file, so that a reader sees whole intervals."""
        if not lines:
            return
        _append(self._histograms, "".join(_histogram(span, line) for line in lines))
        _append(self._timeline, _rows(span, users, lines))


def _histogram(span: Span, line: Line) -> str:
    longest_ms = line.times[4] / NS_PER_MS
    blob = base64.b64encode(line.blob).decode()
    length_s = span.end_s - span.start_s
    return f"Tag={_tag(line.key)},{span.start_s:.6f},{length_s:.6f},{longest_ms:.3f},{blob}\n"


def _tag(key: Key) -> str:
    segment = key.segment
    name = quote(key.transaction, safe="").replace("~", "%7E")
    expected = "expected" if key.expected else "unexpected"
    where = f"{segment.target}/{segment.round}/{segment.phase}"
    return f"{where}/{name}/{key.op}/{key.outcome}/{expected}"


def _rows(span: Span, users: int, lines: Sequence[Line]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in lines:
        segment, key = line.key.segment, line.key
        mean_ns, *others = line.times
        writer.writerow(
            [
                *(f"{span.start_s:.6f}", f"{span.end_s:.6f}"),
                *(segment.target, segment.round, segment.phase, users),
                *(key.transaction, key.op, key.outcome, str(key.expected).lower()),
                *(line.count, line.moved_bytes, f"{mean_ns:.1f}", *others),
            ]
        )
    return text.getvalue()


def _append(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o644)
    try:
        data = memoryview(text.encode())
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
