"""What each request of a trace does, one file after the other. Pure but for reading the trace."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replayer import _native
from replayer._native import OPS
from replayer.ops import SAME_AS, UNTIMED
from replayer.synth.calls import CHANGES, Call, Step, open_step, path_step, steps_of_file
from replayer.trace.errors import translated
from replayer.trace.facts import load_facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Entry", "Request", "Traffic", "Visit", "read_traffic"]

COLUMNS = (
    *("thread", "op", "path", "file", "flags", "mode", "size", "offset", "result", "gap_ns"),
)
NONE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Visit:
    """What a request does with a path, in one go."""

    path: bytes
    """Relative to the top of the trace."""
    steps: tuple[str, ...]
    """Each step as it prints, so that equal ones are equal."""
    calls: int


@dataclass(frozen=True)
class Request:
    """One request."""

    label: str
    thread: int
    start_ns: int
    end_ns: int
    visits: tuple[Visit, ...]
    pause_ns: int
    """What its program did beside its calls."""
    changes: frozenset[str]
    """Calls that may not come out the same for another user."""


@dataclass(frozen=True)
class Entry:
    """What is there before."""

    path: bytes
    type: str
    size: int
    mode: int
    link: bytes


@dataclass(frozen=True)
class Traffic:
    """The requests of a trace, and the files that they need."""

    requests: Sequence[Request]
    tree: Sequence[Entry]
    steps: Mapping[str, Step]
    """By how each prints."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Calls that scenarios have no word for."""


def read_traffic(folder: Path) -> Traffic:
    """Read the requests of a trace.

    Raises:
        TraceError: It is no trace, or is damaged.
    """
    percent = load_facts(str(folder), Path()).pauses_percent or 100
    with translated():
        columns, paths, tree, pieces = _native.trace_calls(str(folder))
    return _Reader(paths, columns, percent).read(tree, pieces)


class _Reader:
    """Turns rows into visits."""

    def __init__(self, paths: Sequence[bytes], columns: Sequence[bytes], percent: int) -> None:
        self._paths = paths
        self._percent = percent
        """What pauses are of those that were recorded, as ``replayer fit`` found."""
        rows = {
            name: np.frombuffer(column, np.int64)
            for name, column in zip(COLUMNS, columns, strict=True)
        }
        self._rows: Mapping[str, NDArray[np.int64]] = rows
        self._steps: dict[str, Step] = {}
        self._left_out: Counter[str] = Counter()

    def read(
        self,
        tree: Sequence[tuple[int, str, int, int | None, bytes | None]],
        pieces: Sequence[tuple[int, str, int, int, int, int, int]],
    ) -> Traffic:
        """Return all requests, each with the pieces that belong to it."""
        found: dict[int, list[tuple[int, str, int, int, int, int, int]]] = {}
        for piece in pieces:
            found.setdefault(piece[0], []).append(piece)
        entries = [self._entry(*row) for row in tree]
        requests = [self._request(own) for own in found.values()]
        known = {entry.path for entry in entries}
        return Traffic(requests, [*entries, *self._made_before(known)], self._steps, self._left_out)

    def _request(self, pieces: Sequence[tuple[int, str, int, int, int, int, int]]) -> Request:
        rows = sorted(row for piece in pieces for row in self._rows_of(piece))
        _, label, thread, *_ = pieces[0]
        changes = {self._op(row) for row in rows} & CHANGES
        return Request(
            label=label,
            thread=thread,
            start_ns=min(piece[5] for piece in pieces),
            end_ns=max(piece[6] for piece in pieces),
            visits=tuple(self._visits(rows)),
            pause_ns=int(self._rows["gap_ns"][rows].sum()) * self._percent // 100 if rows else 0,
            changes=frozenset(changes),
        )

    def _rows_of(self, piece: tuple[int, str, int, int, int, int, int]) -> list[int]:
        threads = self._rows["thread"][piece[3] : piece[4] + 1]
        return [piece[3] + int(place) for place in np.flatnonzero(threads == piece[2])]

    def _visits(self, rows: Sequence[int]) -> Iterator[Visit]:
        """Yield what is done with each path, in the order in which it is begun."""
        opened: dict[int | None, list[Call]] = {}
        begun: list[tuple[int, list[Call]]] = []
        for call in map(self._call, rows):
            if call.op in UNTIMED or call.op in CHANGES:
                continue
            own = opened.get(call.file)
            if call.path is not None and (call.op == "open" or call.file is None):
                begun.append((call.path, [call]))
                if call.op == "open" and call.result >= 0 and call.file is not None:
                    opened[call.file] = begun[-1][1]
            elif own is not None and call.op != "close_dup":
                own.append(call)
            else:
                self._left_out[call.op] += 1
        for path, calls in begun:
            steps = [*self._named(calls)]
            if steps:
                yield Visit(self._paths[path], tuple(steps), len(calls))

    def _named(self, calls: Sequence[Call]) -> Iterator[str]:
        first = calls[0]
        if first.op == "open":
            steps = [open_step(first), *steps_of_file(calls[1:], self._left_out)]
        else:
            step = path_step(first)
            steps = [] if step is None else [step]
            if step is None:
                self._left_out[first.op] += 1
        for step in steps:
            name = repr(step)
            self._steps[name] = step
            yield name

    def _made_before(self, known: set[bytes]) -> Iterator[Entry]:
        """Yield what is found without having been there before: some request made it."""
        found = (self._rows["path"] != NONE) & (self._rows["result"] >= 0)
        made = {self._paths[row] for row in np.unique(self._rows["path"][found])} - known
        folders: set[bytes] = set()
        for path in made:
            parent = path.rpartition(b"/")[0]
            while parent and parent not in known:
                folders.add(parent)
                parent = parent.rpartition(b"/")[0]
        for path in sorted(folders):
            yield Entry(path, "d", 0, 0o755, b"")
        for path in sorted(made - folders):
            yield Entry(path, "f", 0, 0o644, b"")

    def _entry(
        self, path: int, kind: str, size: int, mode: int | None, link: bytes | None
    ) -> Entry:
        usual = 0o755 if kind == "d" else 0o644
        return Entry(self._paths[path], kind, size, usual if mode is None else mode, link or b"")

    def _op(self, row: int) -> str:
        return OPS[int(self._rows["op"][row])][0]

    def _call(self, row: int) -> Call:
        def value(name: str) -> int | None:
            found = int(self._rows[name][row])
            return None if found == NONE else found

        op = self._op(row)
        return Call(
            op=op if op == "close_dup" else SAME_AS.get(op, op),
            path=value("path"),
            file=value("file"),
            flags=value("flags"),
            mode=value("mode"),
            size=value("size"),
            offset=value("offset"),
            result=int(self._rows["result"][row]),
        )
