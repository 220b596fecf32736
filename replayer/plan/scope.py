"""What a compiler knows while it goes through the steps of a transaction: datasets and slots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from replayer.plan.pickers import Pickers
from replayer.plan.tables import Tables, tabulate
from replayer.plan.traces import Traces
from replayer.scenario.draws import Draw
from replayer.scenario.manifests import Entry, find_through_links
from replayer.scenario.model import Scenario


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
        self._largest: dict[int, int] = {}

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
        if id(draw) not in self._largest:  # a scenario outlives its compiler: no number twice
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
