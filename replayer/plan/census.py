"""What a plan's datasets hold, and what its pickers pick from them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from replayer.plan.pickers import Stream
from replayer.plan.spread import ZERO, Spread, equally, uniform, weighted
from replayer.scenario.manifests import find_through_links
from replayer.trace.facts import TraceFacts
from replayer.trace.reading import TraceStatistics, count_trace

BLOCK_BYTES = 4096
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
                return equally([value])
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
        sizes, weights = [], []
        entries = self.entries(self.body["pickers"][picker]["dataset"])
        for index, weight in self.picked(picker):
            sizes.append(entries[index][2])
            weights.append(weight)
        return weighted(sizes, weights)

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
