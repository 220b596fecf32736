"""Writing ``histograms.hlog`` and ``timeline.csv`` as the engine writes them, of merged intervals.

The engine writes its own; this is for figures that were added up elsewhere. What a full disk does
not take waits, as the engine's does. Reading is next door.
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

__all__ = ["Appended", "Line", "Recording"]

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
WAITING_BYTES = 16 << 20
"""As the engine's: what waits while a file cannot be written; beyond it appends are left out."""


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


class Appended:
    """A file with one writer, which appends whole lines to it; nothing here raises.

    Attributes:
        path: Where it is.
        error: Why it has not taken everything at once; the first reason.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: OSError | None = None
        self._waiting = bytearray()

    def append(self, text: str) -> None:
        """Append lines, behind those that wait; with none, those that wait."""
        data = text.encode(errors="replace")
        if len(self._waiting) + len(data) <= WAITING_BYTES:
            self._waiting += data
        try:
            self._write()
        except OSError as error:
            self.error = self.error or error

    def _write(self) -> None:
        if not self._waiting:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path, flags, 0o644)
        try:
            while self._waiting:
                del self._waiting[: os.write(descriptor, self._waiting)]
        finally:
            os.close(descriptor)


class Recording:
    """The two files of one run folder, appended to interval by interval.

    Attributes:
        files: They.
    """

    def __init__(self, folder: Path, begin_epoch_ns: int) -> None:
        self._histograms = Appended(folder / "histograms.hlog")
        self._timeline = Appended(folder / "timeline.csv")
        self.files = (self._histograms, self._timeline)
        seconds, rest_ns = divmod(begin_epoch_ns, NS_PER_S)
        self._histograms.append(
            "#[Histogram log format version 1.3]\n"
            f"#[BaseTime: {seconds}.{rest_ns // NS_PER_MS:03} (seconds since epoch)]\n"
            "#[MaxValueDivisor: 1000000.000]\n"
            '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n',
        )
        self._timeline.append(",".join(COLUMNS) + "\n")

    def add(self, span: Span, users: int, lines: Sequence[Line]) -> None:
        """Append an interval: one write for each file, so that a reader sees whole intervals."""
        if not lines:
            return
        self._histograms.append("".join(_histogram(span, line) for line in lines))
        self._timeline.append(_rows(span, users, lines))


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
