"""What a compiler knows while it goes through the steps of a transaction: tables, datasets, slots.

Distributions become tables of equally probable integers, to which draws refer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

from replayer.plan.pickers import Pickers
from replayer.plan.traces import Traces
from replayer.scenario.draws import Draw, Lognormal
from replayer.scenario.manifests import Entry, find_through_links
from replayer.scenario.model import Scenario

RESOLUTION = 4096
"""Chosen: a table reaches to its 99.988th percentile and takes 32 KiB in an engine."""


class Tables:
    """The tables of a plan, each there once."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self._index: dict[tuple[int, ...], int] = {}

    def add(self, row: Sequence[int]) -> int:
        """Return the index of a table, adding it if it is new."""
        key = tuple(row)
        if key not in self._index:
            self._index[key] = len(self.rows)
            self.rows.append(list(key))
        return self._index[key]


def tabulate(draw: Draw[int]) -> list[int] | None:
    """Return a distribution's table, or None for constants, uniform draws and sizes of files."""
    if draw.lognormal is not None:
        return _lognormal(draw.lognormal)
    if draw.exponential is not None:
        return exponential_table(draw.exponential)
    if draw.quantiles is not None:
        return _interpolated(draw.quantiles)
    return list(draw.values) if draw.values is not None else None


def _midpoints() -> list[float]:
    return [(index + 0.5) / RESOLUTION for index in range(RESOLUTION)]


def _lognormal(shape: Lognormal[int]) -> list[int]:
    normal = NormalDist()
    sigma = math.log(shape.p95 / shape.median) / normal.inv_cdf(0.95)
    return [round(shape.median * math.exp(sigma * normal.inv_cdf(q))) for q in _midpoints()]


def exponential_table(mean: float) -> list[int]:
    """Return an exponential distribution whose table has exactly the mean asked for."""
    raw = [-math.log1p(-q) for q in _midpoints()]
    scale = mean * RESOLUTION / math.fsum(raw)
    row = [round(value * scale) for value in raw]
    row[-1] += round(mean * RESOLUTION) - sum(row)  # what rounding left over
    return row


def _interpolated(quantiles: Sequence[int]) -> list[int]:
    spans = len(quantiles) - 1
    row = []
    for q in _midpoints():
        position = q * spans
        index = min(int(position), spans - 1)
        low, high = quantiles[index], quantiles[index + 1]
        row.append(round(low + (high - low) * (position - index)))
    return row


@dataclass
class Book:
    """The shared parts of a plan under way: tables, pickers, datasets, traces."""

    scenario: Scenario
    users: int
    entries: Mapping[str, tuple[Entry, ...]]
    tables: Tables
    pickers: Pickers
    changed: frozenset[str] = frozenset()
    largest_write: int = 0

    def __post_init__(self) -> None:
        self.numbers = {name: number for number, name in enumerate(self.entries)}
        self.traces = Traces(self.entries)
        self.positions: dict[str, dict[str, int]] = {}
        self.signals: dict[str, int] = {}
        self.bounded: set[int] = set()
        self._largest: dict[int, int] = {}  # a scenario outlives its compiler: no number twice

    def position(self, dataset: str, path: str) -> int | None:
        """Return the index of an entry by its path, or None when the dataset does not hold it."""
        if dataset not in self.positions:
            entries = self.entries[dataset]
            self.positions[dataset] = {entry.path: index for index, entry in enumerate(entries)}
        return self.positions[dataset].get(path)

    def holds(self, dataset: str, path: str) -> bool:
        """Whether a dataset lays a path out, also through its symbolic links."""
        if not self.scenario.datasets[dataset].layout:
            return False
        entries = self.entries[dataset]
        number = find_through_links(
            path,
            lambda inner: self.position(dataset, inner),
            lambda index: entries[index].link or None,
        )
        return number is not None

    def signal(self, name: str) -> int:
        """Return the number of a signal, from 0 in the order of their use."""
        return self.signals.setdefault(name, len(self.signals))

    def writes(self, size_bytes: int) -> None:
        """Take note of a single write of that size."""
        self.largest_write = max(self.largest_write, size_bytes)

    def stays(self, dataset: str) -> bool:
        """Whether the files of a dataset are laid out and keep their sizes during a run."""
        return self.scenario.datasets[dataset].layout and dataset not in self.changed

    def largest(self, draw: Draw[int]) -> int:
        """Return the largest value that a draw can give."""
        if draw.const is not None:
            return draw.const
        if draw.uniform is not None:
            return draw.uniform[1]
        if draw.size_of is not None:
            return self.largest_entry
        if id(draw) not in self._largest:
            self._largest[id(draw)] = max(tabulate(draw) or [0])
        return self._largest[id(draw)]

    @cached_property
    def largest_entry(self) -> int:
        """The size of the largest file of all datasets."""
        return max((e.size for rows in self.entries.values() for e in rows), default=0)


@dataclass
class Scope:
    """What is known at a point of a transaction."""

    book: Book
    slots: Mapping[str, int]
    whole: dict[str, bool] = field(default_factory=dict)
    """Of each open file: whether its entry's size is known and nothing of it has been read."""
    sized: dict[str, str] = field(default_factory=dict)
    """The dataset of the entry that each name is bound to, where its size is that of the file."""
    exists: dict[str, bool] = field(default_factory=dict)
    """Whether the dataset lays out what each name is bound to, where that is known."""

    def unbind(self, name: str) -> None:
        """Know nothing of a name any more: it gets a new meaning."""
        for known in (self.whole, self.sized, self.exists):
            known.pop(name, None)

    def take_over(self, name: str, other: str) -> None:
        """Know of a name what is known of another one, whose path it has from now on."""
        self.unbind(name)
        if other in self.sized:
            self.sized[name] = self.sized[other]
        if other in self.exists:
            self.exists[name] = self.exists[other]

    def slot(self, name: str) -> int:
        """Return the number of a name's slot."""
        return self.slots[name]

    def draw(self, draw: Draw[int]) -> dict[str, Any]:
        """Return a draw in the form of plan format 1."""
        if draw.const is not None:
            return {"const": draw.const}
        if draw.size_of is not None:
            return {"size_of": self.slot(draw.size_of)}
        if draw.uniform is not None:
            return {"uniform": list(draw.uniform)}
        return {"table": self.book.tables.add(tabulate(draw) or [0])}

    def forget(self) -> None:
        """Know nothing of open files any more: a loop may have come here before."""
        self.whole.clear()
        self.sized.clear()
        self.exists.clear()
