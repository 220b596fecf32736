"""A run's timeline as numbers: for each key its intervals, oldest first, as columns.

Made in the pass that reads ``timeline.csv`` anyway. What is found in them (steps, drift, silence)
is the analysis's; nothing is judged here.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from replayer.measure.hlog import Key
from replayer.measure.timeline import Row

__all__ = ["Columns", "Seconds"]

Floats = NDArray[np.float64]

_FIELDS = ("start_s", "end_s", "count", "bytes", "mean_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns")


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


@dataclass
class Columns:
    """Collects rows into columns: 72 bytes a row, where row objects would take a kilobyte."""

    _cells: "dict[Key, array[float]]" = field(default_factory=dict)

    def take(self, row: Row) -> None:
        """Append one row to its key's columns."""
        cells = self._cells.get(row.key)
        if cells is None:
            cells = self._cells[row.key] = array("d")
        cells.extend(
            (
                row.span.start_s,
                row.span.end_s,
                row.count,
                row.bytes,
                row.mean_ns,
                row.p50_ns,
                row.p95_ns,
                row.p99_ns,
                row.max_ns,
            )
        )

    def finished(self) -> Mapping[Key, Seconds]:
        """Return what was collected."""
        return MappingProxyType({key: _seconds(cells) for key, cells in self._cells.items()})


def _seconds(cells: "array[float]") -> Seconds:
    table = np.frombuffer(cells, np.float64).reshape(-1, len(_FIELDS))
    return Seconds(*(np.ascontiguousarray(table[:, place]) for place in range(len(_FIELDS))))
