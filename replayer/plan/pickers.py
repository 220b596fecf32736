"""Pickers of plan format 1, how an entry is chosen from a dataset, and its random numbers.

Those are SplitMix64, as the engines have it: Steele, Lea and Flood, 'Fast splittable pseudorandom
number generators', OOPSLA 2014.
"""

import json
import math
from collections.abc import MutableSequence
from typing import Any, TypeVar

from replayer.scenario.places import Hot, Zipf

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15

T = TypeVar("T")


def mix64(value: int) -> int:
    """Return the 64-bit finaliser of SplitMix64."""
    value &= MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Stream:
    """A stream of pseudo-random numbers."""

    def __init__(self, state: int) -> None:
        self._state = state & MASK

    def following(self) -> int:
        """Return the next 64 bits."""
        self._state = (self._state + GAMMA) & MASK
        return mix64(self._state)

    def below(self, bound: int) -> int:
        """Return a number from 0 up to, not including, ``bound``."""
        return (self.following() * bound) >> 64

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Shuffle in place (Fisher-Yates, from the last item down)."""
        for index in range(len(items) - 1, 0, -1):
            other = self.below(index + 1)
            items[index], items[other] = items[other], items[index]


SCALE = 2**32
"""Chosen: the sum of a Zipf picker's weights; far finer than any run can tell."""


class Pickers:
    """The pickers of a plan, each there once."""

    def __init__(self, seed: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self._index: dict[str, int] = {}
        self._seed = seed

    def add(self, dataset: int, types: str, pick: object, candidates: int) -> int:
        """Return the index of a picker over that many candidates."""
        row = {"dataset": dataset, "types": types, **_shape(pick, candidates)}
        if isinstance(pick, Hot | Zipf):  # which files are hot is drawn, not the first ones
            row["shuffle"] = mix64(self._seed + GAMMA * (dataset + 1))
        return self._intern(row)

    def add_segments(self, dataset: int, types: str, segments: list[list[int]]) -> int:
        """Return the index of a picker over some of the candidates."""
        row = {"dataset": dataset, "types": types, "kind": "segments"}
        return self._intern({**row, "segments": segments, "shuffle": None})

    def add_single(self, dataset: int, entry: int) -> int:
        """Return the index of a picker that always picks the same entry."""
        return self.add_segments(dataset, "fdl", [[1, entry, 1]])

    def _intern(self, row: dict[str, Any]) -> int:
        key = json.dumps(row)  # all rows have their keys in one order
        if key not in self._index:
            self._index[key] = len(self.rows)
            self.rows.append(row)
        return self._index[key]


def zipf_segments(exponent: float, candidates: int) -> list[list[int]]:
    """Return segments of ranks, each a quarter longer, weighted by the sum of rank ** -exponent.

    The first ranks stand alone, so that the head, where Zipf matters, is exact.
    """
    segments, start = [], 0
    while start < candidates:
        count = min(max(1, start // 4), candidates - start)
        ranks = range(start + 1, start + count + 1)
        segments.append((math.fsum(rank**-exponent for rank in ranks), start, count))
        start += count
    whole = math.fsum(weight for weight, _, _ in segments)
    return [[max(1, round(weight / whole * SCALE)), at, count] for weight, at, count in segments]


def _shape(pick: object, candidates: int) -> dict[str, Any]:
    if isinstance(pick, str) and pick in {"sequential", "own"}:
        return {"kind": pick}
    if isinstance(pick, Zipf):
        segments = zipf_segments(pick.zipf, candidates)
    elif isinstance(pick, Hot):
        segments = _hot_segments(pick, candidates)
    else:
        segments = [[1, 0, candidates]]
    return {"kind": "segments", "segments": segments, "shuffle": None}


def _hot_segments(pick: Hot, candidates: int) -> list[list[int]]:
    share, part = pick.hot
    hot = max(1, round(candidates * part / 100))
    if hot >= candidates:
        return [[1, 0, candidates]]
    return [[share, 0, hot], [100 - share, hot, candidates - hot]]
