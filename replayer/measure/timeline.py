"""Reading ``timeline.csv``: second by second, with the bytes, which histograms do not hold.

A last line that was cut short is counted and left out. Rows go to the summary (bytes). Columns of
numbers, for each key its intervals, go to the analysis (steps, drift, silences).
"""

import csv
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from replayer.measure.hlog import PHASES, Key, Phase, Segment

COLUMNS = (
    "start_s",
    "end_s",
    "target",
    "round",
    "phase",
    "users",
    "transaction",
    "op",
    "outcome",
    "expected",
    "count",
    "bytes",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
)


@dataclass(frozen=True)
class TimelineRow:
    """One key in one interval."""

    key: Key
    users: int
    start_s: float
    end_s: float
    count: int
    bytes: int
    mean_ns: float
    p50_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int


def read_timeline(path: Path) -> Iterator[TimelineRow | None]:
    """Yield the rows in order, None for one that is not whole; a missing file has none."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        whole = _Whole(islice(file, 1, None))  # the first line is the header
        records = csv.reader(whole)
        while True:
            try:
                yield _parse_row(next(records))
            except StopIteration:
                break
            except (ValueError, csv.Error):
                yield None
        if whole.cut:
            yield None


class _Whole:
    """The lines that end as lines do; remembers whether the last one does not."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.cut = not line.endswith("\n")
            if not self.cut:
                yield line


def _phase(name: str) -> Phase:
    return next((phase for phase in PHASES if phase == name), "warm-up")


def _parse_row(cells: list[str]) -> TimelineRow:
    record = dict(zip(COLUMNS, cells, strict=True))
    segment = Segment(
        int(record["target"]),
        int(record["round"]),
        _phase(record["phase"]),
    )
    return TimelineRow(
        key=Key(
            segment,
            record["transaction"],
            record["op"],
            record["outcome"],
            record["expected"] in _YES,
        ),
        users=int(record["users"]),
        start_s=float(record["start_s"]),
        end_s=float(record["end_s"]),
        count=int(record["count"]),
        bytes=int(record["bytes"]),
        mean_ns=float(record["mean_ns"]),
        p50_ns=int(record["p50_ns"]),
        p95_ns=int(record["p95_ns"]),
        p99_ns=int(record["p99_ns"]),
        max_ns=int(record["max_ns"]),
    )


_YES = frozenset({"true", "True", "1", "expected"})


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Seconds:
    """One key's intervals, one value of each array for each interval in which something ended."""

    start_s: Floats
    end_s: Floats
    count: Floats
    bytes: Floats
    mean_ns: Floats
    p50_ns: Floats
    p95_ns: Floats
    p99_ns: Floats
    max_ns: Floats


_figures_of = attrgetter(*(each.name for each in fields(Seconds)))


@dataclass
class Columns:
    """Collects rows into columns: 72 bytes a row, where row objects would take a kilobyte."""

    _cells: "dict[Key, array[float]]" = field(default_factory=dict)

    def take(self, row: TimelineRow) -> None:
        """Append one row to its key's columns."""
        cells = self._cells.get(row.key)
        if cells is None:
            cells = self._cells[row.key] = array("d")
        cells.extend(_figures_of(row))

    def finished(self) -> Mapping[Key, Seconds]:
        """Return what was collected."""
        return MappingProxyType({key: _seconds(cells) for key, cells in self._cells.items()})


def _seconds(cells: "array[float]") -> Seconds:
    table = np.frombuffer(cells, np.float64).reshape(-1, len(fields(Seconds)))
    return Seconds(*(np.ascontiguousarray(column) for column in table.T))
