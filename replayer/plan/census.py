"""What a plan's datasets hold, and what its pickers pick from them.

A number that is not known before a run is a ``Spread``: its possible values, each with its
probability.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from replayer.plan.pickers import Stream
from replayer.scenario.manifests import find_through_links
from replayer.trace.facts import TraceFacts
from replayer.trace.reading import TraceStatistics, count_trace

Numbers = npt.NDArray[np.float64]

POINTS = 256
"""Chosen: into how many values a uniform distribution or a product is broken up."""


@dataclass(frozen=True)
class Spread:
    """Values with weights that sum to 1."""

    values: Numbers
    weights: Numbers

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(np.dot(self.values, self.weights))

    @property
    def maximum(self) -> float:
        """The largest value."""
        return float(self.values.max())

    def map(self, function: Callable[[Numbers], Numbers]) -> "Spread":
        """Return the spread of a function of the value."""
        return Spread(function(self.values), self.weights)


def constant(value: float) -> Spread:
    """Return a value that is known."""
    return Spread(np.array([float(value)]), np.ones(1))


def equally(values: npt.ArrayLike) -> Spread:
    """Return equally probable values, each different one once."""
    found, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return Spread(found, counts / counts.sum())


def uniform(low: int, high: int) -> Spread:
    """Return the whole numbers from low to high; many of them are stood for by a few."""
    if high - low < POINTS:
        return equally(np.arange(low, high + 1))
    steps = (np.arange(POINTS) + 0.5) / POINTS
    return equally(low + steps * (high - low))


def weighted(values: npt.ArrayLike, weights: npt.ArrayLike) -> Spread:
    """Return values with weights of any sum."""
    numbers = np.asarray(values, dtype=np.float64)
    shares = np.asarray(weights, dtype=np.float64)
    found, index = np.unique(numbers, return_inverse=True)
    sums = np.bincount(index.ravel(), weights=shares, minlength=len(found))
    return Spread(found, sums / sums.sum())


def ratio_up(total: Spread, block: Spread) -> float:
    """Return the expected number of blocks that a total needs, both drawn independently."""
    small = _thinned(block)
    ratios = np.ceil(total.values[:, None] / np.maximum(small.values[None, :], 1.0))
    return float(total.weights @ ratios @ small.weights)


def pieces(total: Spread, first: Spread, block: Spread) -> float:
    """Return the expected number of pieces of a total: a first one, and blocks of the rest."""
    if first is block:
        return ratio_up(total, block)
    begun = float(total.weights @ (total.values > 0))
    few = _thinned(first)
    return begun + sum(
        float(weight) * ratio_up(total.map(partial(_less, taken)), block)
        for taken, weight in zip(few.values, few.weights, strict=True)
    )


def _less(taken: float, values: Numbers) -> Numbers:
    return np.maximum(values - max(taken, 1.0), 0.0)


def smaller(one: Spread, other: Spread) -> float:
    """Return the expected smaller one of two independent numbers."""
    small = _thinned(other)
    least = np.minimum(one.values[:, None], small.values[None, :])
    return float(one.weights @ least @ small.weights)


def _thinned(spread: Spread) -> Spread:
    if len(spread.values) <= POINTS:
        return spread
    order = np.linspace(0, len(spread.values) - 1, POINTS).astype(int)
    return weighted(spread.values[order], spread.weights[order])


ZERO = constant(0)


BLOCK_BYTES = 4096  # chosen: the block of ext4, xfs and most servers
"""Chosen: the block of ext4, xfs and most servers; what a small file takes at least."""


class Census:
    """Answers questions about the datasets, tables, pickers and traces of a plan."""

    def __init__(self, body: Mapping[str, Any], traces: Sequence[TraceFacts] = ()) -> None:
        self.body = body
        self.traces = traces
        self.spread_of_pick = cache(self._spread_of_pick)
        self.picked = cache(self._picked)
        self.positions = cache(self._positions)

    def entries(self, dataset: int) -> list[list[Any]]:
        """Return the entries of a dataset."""
        found: list[list[Any]] = self.body["datasets"][dataset]["entries"]
        return found

    def table(self, index: int) -> Spread:
        """Return what a table draws."""
        return equally(self.body["tables"][index])

    def draw(self, draw: Mapping[str, Any], sizes: Mapping[int, Spread]) -> Spread:
        """Return what a draw of plan format 1 gives, by the sizes of what slots are bound to."""
        match draw:
            case {"const": value}:
                return constant(value)
            case {"uniform": [low, high]}:
                return uniform(low, high)
            case {"table": index}:
                return self.table(index)
            case _:
                return sizes.get(draw["size_of"], ZERO)

    def of_type(self, dataset: int, types: str) -> list[int]:
        """Return the indexes of a dataset's entries of some types, in order."""
        return [i for i, entry in enumerate(self.entries(dataset)) if entry[1] in types]

    def sizes_of_type(self, dataset: int, kind: str) -> Spread:
        """Return the sizes of the entries of one type."""
        rows = [entry[2] for entry in self.entries(dataset) if entry[1] == kind]
        return equally(rows) if rows else ZERO

    def _spread_of_pick(self, picker: int) -> Spread:
        entries, picked = self.entries(self.body["pickers"][picker]["dataset"]), self.picked(picker)
        if len(picked) == 1:
            return constant(entries[picked[0][0]][2])
        return weighted([entries[index][2] for index, _ in picked], [each for _, each in picked])

    def _picked(self, picker: int) -> list[tuple[int, float]]:
        """Return the entries that a picker may pick, each with its probability."""
        row = self.body["pickers"][picker]
        if row["kind"] == "segments" and row["segments"] == [row["segments"][0]]:
            _, start, count = row["segments"][0]
            if row["types"] == "fdl" and row["shuffle"] is None:
                return [(index, 1 / count) for index in range(start, start + count)]
        candidates = self.of_type(row["dataset"], row["types"])
        if row["kind"] != "segments":
            return [(index, 1 / len(candidates)) for index in candidates]
        if row["shuffle"] is not None:
            Stream(row["shuffle"]).shuffle(candidates)
        whole = sum(weight for weight, _, _ in row["segments"])
        return [
            (index, weight / whole / count)
            for weight, start, count in row["segments"]
            for index in candidates[start : start + count]
        ]

    def _positions(self, dataset: int) -> dict[str, int]:
        return {entry[0]: index for index, entry in enumerate(self.entries(dataset))}

    def find(self, dataset: int, path: str) -> int | None:
        """Return the index of the entry that a path leads to, also through links, or None."""
        entries = self.entries(dataset)
        return find_through_links(
            path, self.positions(dataset).get, lambda index: entries[index][4] or None
        )

    def replayed(self, step: Mapping[str, Any]) -> TraceStatistics:
        """Return what a replay step does, all requests of its label together."""
        return count_trace(self.traces[step["trace"]].folder, step["request"])

    def whole(self, trace: int) -> TraceStatistics:
        """Return what all of a trace does."""
        return count_trace(self.traces[trace].folder, None)

    def copies(self, dataset: int) -> int:
        """Return how many copies of a dataset are laid out."""
        per_user = self.body["datasets"][dataset]["scope"] == "user"
        return int(self.body["users"]) if per_user else 1

    def space_bytes(self, dataset: int) -> int:
        """Return what a dataset takes in blocks, all copies."""
        if not self.body["datasets"][dataset]["laid_out"]:
            return BLOCK_BYTES * self.copies(dataset)
        sizes = np.array([entry[2] for entry in self.entries(dataset)] or [0], dtype=np.int64)
        blocks = -(-sizes // BLOCK_BYTES)
        directories = sum(entry[1] == "d" for entry in self.entries(dataset)) + 1
        return int((int(blocks.sum()) + directories) * BLOCK_BYTES * self.copies(dataset))

    def inodes(self, dataset: int) -> int:
        """Return how many files, directories and links a dataset makes, all copies."""
        laid_out = bool(self.body["datasets"][dataset]["laid_out"])
        return (len(self.entries(dataset)) * laid_out + 1) * self.copies(dataset)
