"""A trace's calls by thread over time, and beside them those of a replay.

A picture of a million calls needs no more than what its columns show: how much of each was spent in
calls, and of which kind. Both come from sums over all calls before a time, which are made once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replayer import _native
from replayer.ops import BY_NAME, FLUSHING, UNTIMED, Op
from replayer.trace.errors import TraceError, translated

__all__ = ["KINDS", "Calls", "Events", "Performance", "find_performances", "kind_of", "load_events"]

KINDS = ("look", "read", "write", "alter", "flush", "other")
"""What calls do, by which a picture tells them apart."""
NO_PATH = -1
NOT_KNOWN = -1
RECORD = np.dtype([("row", "<u8"), ("start_ns", "<u8"), ("end_ns", "<u8")])
"""A record of an event log (``replayer/native/engine/src/replay/play/log.rs``)."""
LOG_NAME = re.compile(r"u(\d+)-p(\d+)-l\d+\.events")

Times = NDArray[np.int64]


def kind_of(op: Op) -> str:
    """Return which of ``KINDS`` an op belongs to."""
    if op.name in FLUSHING:
        return "flush"
    if op.contents in {"writes", "copies"} or op.kind == "write":
        return "write"
    if op.contents == "reads" or op.kind == "read":
        return "read"
    if op.kind in {"alter", "attribute", "mark"}:
        return "alter"
    return "look" if op.kind == "look" else "other"


NAMES = tuple(BY_NAME)
_KIND_OF_OP = np.array([KINDS.index(kind_of(op)) for op in BY_NAME.values()], np.uint8)
_IS_TIMED = np.array([name not in UNTIMED for name in NAMES])


@dataclass(frozen=True)
class Events:
    """All events of a trace, a row each.

    Attributes:
        thread: Numbers of threads.
        op: Places in ``NAMES``.
        path: Rows of ``paths``, also of what is meant by an open file; -1: none.
        result: What it returned; an error is its number, negative.
        recorded: When they were made, since the begin of the trace.
        paths: Of the trace.
        labels: What many users need of each path, by the names of FORMAT.md.
    """

    thread: NDArray[np.uint32]
    op: NDArray[np.uint8]
    path: NDArray[np.int32]
    result: Times
    recorded: "Calls"
    paths: Sequence[str]
    labels: Sequence[str]

    @cached_property
    def threads(self) -> list[int]:
        """Those that have a timed call, by their number."""
        return [int(thread) for thread in np.unique(self.thread[_IS_TIMED[self.op]])]

    def replayed(self, performance: "Performance") -> "Calls":
        """Return when a replay made these events; its first one is put where it was recorded.

        Raises:
            TraceError: Its log cannot be read, or is of another trace.
        """
        start_ns, duration_ns = np.full((2, len(self.op)), NOT_KNOWN, np.int64)
        for log in performance.logs:
            records = _read(log)
            rows = records["row"].astype(np.int64)
            if len(rows) and rows.max() >= len(self.op):
                message = f"{log}: is of another trace: it has no event {rows.max()}"
                raise TraceError(message)
            start_ns[rows] = records["start_ns"]
            duration_ns[rows] = records["end_ns"] - records["start_ns"]
        is_made = start_ns != NOT_KNOWN
        if is_made.any():
            first = int(np.argmin(np.where(is_made, start_ns, np.iinfo(np.int64).max)))
            start_ns[is_made] += self.recorded.start_ns[first] - start_ns[first]
        return self._calls(start_ns, duration_ns, is_made)

    def _calls(self, start_ns: Times, duration_ns: Times, is_made: NDArray[np.bool_]) -> "Calls":
        return Calls(self.thread, self.op, self.result, start_ns, duration_ns, is_made)

    def find(self, words: str, error: int | None, op: str | None) -> Times:
        """Return the rows of the calls on paths with these words, with this error, of this op."""
        fits = _IS_TIMED[self.op]
        if words:
            named = np.array([words in path for path in self.paths] + [False])  # the last: no path
            fits &= named[self.path]
        if error is not None:
            fits &= self.result == -error
        if op is not None:
            fits &= self.op == (NAMES.index(op) if op in NAMES else len(NAMES))
        return np.flatnonzero(fits)

    def path_of(self, row: int) -> str:
        """Return the path of an event; empty: it has none."""
        place = self.path[row]
        return "" if place == NO_PATH else self.paths[place]


@dataclass(frozen=True)
class Lane:
    """The timed calls of one thread by their begin: none begins before the one before it ended.

    Attributes:
        rows: Of the events.
        start_ns: When each began.
        end_ns: When each ended.
        spent: Time in all calls before each, and at last in all, by kind: calls + 1 by kinds.
    """

    rows: Times
    start_ns: Times
    end_ns: Times
    spent: Times
    kind: NDArray[np.uint8]

    def spent_until(self, times: Times) -> Times:
        """Return the time in calls until each of these times, by kind: times by kinds."""
        after = np.searchsorted(self.start_ns, times, side="right")
        spent = self.spent[after].copy()
        last = after - 1
        is_in = last >= 0
        left = np.maximum(self.end_ns[last] - times, 0) * is_in
        spent[np.arange(len(times)), self.kind[last]] -= left
        return spent

    def begun_between(self, edges: Times) -> Times:
        """Return how many calls began between each two of these times that follow each other."""
        return np.diff(np.searchsorted(self.start_ns, edges, side="left"))

    def between(self, from_ns: int, to_ns: int) -> slice:
        """Return which calls are under way at some time between two."""
        first = np.searchsorted(self.end_ns, from_ns, side="left")
        return slice(int(first), int(np.searchsorted(self.start_ns, to_ns, side="right")))


@dataclass(frozen=True)
class Calls:
    """When events were made: as recorded, or by a replay."""

    thread: NDArray[np.uint32]
    op: NDArray[np.uint8]
    result: Times
    start_ns: Times
    duration_ns: Times
    is_made: NDArray[np.bool_]

    @cached_property
    def end_ns(self) -> int:
        """When the last of them had ended."""
        ends = self.start_ns + np.maximum(self.duration_ns, 0)
        return int(ends.max(initial=0, where=self.is_made))

    @cached_property
    def lanes(self) -> dict[int, Lane]:
        """The timed calls of each thread."""
        chosen = np.flatnonzero(self.is_made & _IS_TIMED[self.op])
        if not len(chosen):
            return {}
        order = chosen[np.lexsort((self.start_ns[chosen], self.thread[chosen]))]
        threads, begins = np.unique(self.thread[order], return_index=True)
        parts = np.split(order, begins[1:])
        return {int(thread): self._lane(rows) for thread, rows in zip(threads, parts, strict=True)}

    def _lane(self, rows: Times) -> Lane:
        start_ns, kind = self.start_ns[rows], _KIND_OF_OP[self.op[rows]]
        end_ns = start_ns + np.maximum(self.duration_ns[rows], 0)
        # Stamps of a recorder may overlap by a tick.
        end_ns[:-1] = np.maximum(np.minimum(end_ns[:-1], start_ns[1:]), start_ns[:-1])
        spent = np.zeros((len(rows) + 1, len(KINDS)), np.int64)
        spent[np.arange(len(rows)) + 1, kind] = end_ns - start_ns
        return Lane(rows, start_ns, end_ns, spent.cumsum(axis=0), kind)


@dataclass(frozen=True)
class Performance:
    """One replay of a trace by one user: the files of its event log."""

    user: int
    number: int
    logs: tuple[Path, ...]

    @cached_property
    def begin_ns(self) -> int | None:
        """When it made its first call, since the run's begin; None: it made none.

        Raises:
            TraceError: A log cannot be read.
        """
        begins = [int(each) for log in self.logs for each in _read(log, 1)["start_ns"]]
        return min(begins, default=None)


def load_events(folder: Path) -> Events:
    """Read all events of a trace.

    Raises:
        TraceError: It is no trace, or is damaged.
    """
    with translated():
        columns, named = _native.trace_events(str(folder))
    kinds = (np.uint32, np.int64, np.int64, np.uint8, np.int32, np.int64)
    found = [np.frombuffer(part, kind) for part, kind in zip(columns, kinds, strict=True)]
    thread, start_ns, duration_ns, op, path, result = found
    recorded = Calls(thread, op, result, start_ns, duration_ns, np.ones(len(op), bool))
    paths, labels = zip(*named, strict=True) if named else ((), ())
    return Events(thread, op, path, result, recorded, paths, labels)


def find_performances(log: Path) -> list[Performance]:
    """Return the replays whose event logs are in a folder, by user and number."""
    found: dict[tuple[int, int], list[Path]] = {}
    for path, match in _named(log):
        found.setdefault((int(match[1]), int(match[2])), []).append(path)
    return [Performance(*key, tuple(sorted(found[key]))) for key in sorted(found)]


def _named(log: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    try:
        paths = [*log.iterdir()]
    except OSError:
        return  # the run kept no event log, or it was taken away
    for path in paths:
        match = LOG_NAME.fullmatch(path.name)
        if match is not None and not path.is_symlink():
            yield path, match


def _read(path: Path, most: int = -1) -> NDArray[np.void]:
    """Return the first records of a log, or all; one that a killed run left unfinished is not read.

    Raises:
        TraceError: It cannot be read.
    """
    try:
        return np.fromfile(path, RECORD, most)
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise TraceError(message) from error
