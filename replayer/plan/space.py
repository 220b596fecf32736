"""What one transaction is expected to do, in numbers, and the space that it needs meanwhile.

A file that is not known to be removed by the transaction that made it counts as left behind.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Kept:
    """Files that a transaction leaves under names which later ones use again."""

    files: float
    size_bytes: float
    """What those of one transaction hold; not what is appended, which later ones add to."""
    names: float
    """How many such names there are for all users."""

    def made_again(self, transactions: float) -> float:
        """Return how many of the files that so many transactions make are there already."""
        return max(transactions * self.files - self.names, 0.0)


@dataclass
class Tally:
    """Expected amounts of one transaction."""

    ops: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    ends: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Calls among these that only find the end of a file that is copied or sent."""
    failing_lookups: float = 0.0
    bytes_read: float = 0.0
    bytes_written: float = 0.0
    created: float = 0.0
    removed: float = 0.0
    think_ns: float = 0.0
    replayed_bytes: float = 0.0
    """Written by a replay: part of ``bytes_written``."""
    passed_bytes: float = 0.0
    """Written into files that the transaction removes itself: part of ``bytes_written``."""
    passed_files: float = 0.0
    """Made and removed by the transaction itself: part of ``created``."""
    held_bytes: float = 0.0
    """Space that a replay, or files that are removed again, need meanwhile and give back."""
    held_files: float = 0.0
    """Made by a replay or a transaction, which removes them again, at most at a time."""
    kept: Sequence[Kept] = ()
    """What takes room once for each name, however often it is written."""
    hoards: bool = False
    """Gives ever new names to files that others made, which are then made anew."""
    touched: set[tuple[int, int]] = field(default_factory=set)
    """Entries of laid-out datasets that may be used: (dataset, index)."""


@dataclass
class _Files:
    """Files of one name: how many a transaction makes, and what it writes into them."""

    count: float = 0.0
    size_bytes: float = 0.0
    names: float = math.inf
    """Under how many names there can be such files."""
    appended: bool = False


class SpaceEstimate:
    """Follows what a transaction makes, writes, renames and removes, in order."""

    def __init__(self) -> None:
        self.passed_bytes = 0.0
        """Written into files that the transaction removes itself."""
        self.passed_files = 0.0
        """These files, and directories."""
        self.hoards = False
        """Whether files that others made get ever new names: then those are made anew."""
        self._files: dict[Hashable, _Files] = {}
        # Bytes and files that are there now, and were at most, of one turn of the innermost loop.
        self._now = np.zeros(2)
        self._most = np.zeros(2)

    @property
    def held_bytes(self) -> float:
        """How many bytes there are at most beyond those that are there in the end."""
        return float(self._most[0] - self._now[0])

    @property
    def held_files(self) -> float:
        """The same of files."""
        return float(self._most[1] - self._now[1])

    def kept(self) -> list[Kept]:
        """Return what is left under names that are used again."""
        return [
            Kept(each.count, 0.0 if each.appended else each.size_bytes, each.names)
            for each in self._files.values()
            if each.count and math.isfinite(each.names)
        ]

    def made(self, name: Hashable, times: float, names: float) -> None:
        """Something new has a name, one of so many."""
        found = self._files.setdefault(name, _Files())
        found.count += times
        found.names = names
        self._add(0.0, 1.0)

    def written(self, name: Hashable, times: float, size_bytes: float) -> None:
        """So many bytes were written into what had a name when it was opened."""
        if name in self._files:
            self._files[name].size_bytes += times * size_bytes
        self._add(size_bytes, 0.0)

    def grows(self, name: Hashable) -> None:
        """What is written into what has a name is added to what it held."""
        if name in self._files:
            self._files[name].appended = True

    def moved(self, name: Hashable, to: Hashable, names: float) -> None:
        """Something has another name, one of so many."""
        self.left(to)
        self.shared(name, names)
        if name in self._files:
            self._files[to] = self._files.pop(name)
            self._files[to].names = names

    def shared(self, name: Hashable, names: float) -> None:
        """What has a name gets another one, one of so many."""
        if name not in self._files and math.isinf(names):
            self.hoards = True

    def left(self, name: Hashable) -> None:
        """Removing a name frees nothing any more: the file has another one, too."""
        self._files.pop(name, None)

    def removed(self, name: Hashable, times: float) -> None:
        """A name is gone, and what it led to."""
        found = self._files.get(name)
        if found is None or not found.count or not times:
            return
        gone = min(times, found.count)
        each_bytes = found.size_bytes / found.count
        self.passed_files += gone
        self.passed_bytes += gone * each_bytes
        found.count -= gone
        found.size_bytes -= gone * each_bytes
        self._add(-each_bytes * gone / times, -gone / times)

    @contextmanager
    def turns(self, count: float) -> Iterator[None]:
        """What is done inside is done so many times, one after the other; below 1: so likely."""
        before, most = self._now, self._most
        self._now = self._most = np.zeros(2)
        yield
        if count > 0:
            last = before + max(count - 1, 0) * self._now.clip(0)
            most = np.maximum(most, last + self._most)
        self._now, self._most = before + count * self._now, most

    def _add(self, size_bytes: float, files: float) -> None:
        self._now = self._now + np.array([size_bytes, files])
        self._most = np.maximum(self._most, self._now)


def count_names(parts: Sequence[Any], names_of: Mapping[int, float], users: int) -> float:
    """Return how many names a template gives to all users in a segment.

    ``names_of`` is the number of names that each slot may be bound to.
    """
    found = float(users) if {"user": True} in parts else 1.0
    for part in parts:
        match part:
            case str() | {"user": True} | {"round": True}:
                pass
            case {"path_of": int(slot)} | {"name_of": int(slot)}:
                found *= names_of.get(slot, math.inf)
            case _:
                return math.inf
    return found
