"""Transactions of one kind, one for each of several sizes: a sweep.

A sweep is known by its names: at least four transactions that are alike but for a size at their
end, such as ``write_64B`` … ``write_4MiB``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Sweep", "by_size", "find_sweeps"]

FEWEST = 4  # sizes: chosen

_NAME = re.compile(
    r"(?P<stem>.*?)[-_ ]?(?P<number>\d+)[-_ ]?(?P<unit>[kmg]?i?b|[kmg])$", re.IGNORECASE
)
_POWERS = {"k": 1, "m": 2, "g": 3}


@dataclass(frozen=True)
class Sweep:
    """The transactions of one stem.

    Attributes:
        stem: What their names have in common.
        sizes: Size in bytes of each transaction, by its name, smallest first.
    """

    stem: str
    sizes: Mapping[str, int]

    @property
    def labels(self) -> dict[str, str]:
        """Each size as it is written at the end of its transaction's name."""
        found = ((name, _NAME.fullmatch(name)) for name in self.sizes)
        return {name: f"{match['number']}{match['unit']}" for name, match in found if match}


def find_sweeps(names: Sequence[str]) -> tuple[Sweep, ...]:
    """Return the sweeps among transactions' names."""
    found: dict[str, dict[str, int]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None:
            size = int(match["number"]) * _unit_bytes(match["unit"].lower())
            found.setdefault(match["stem"], {})[name] = size
    return tuple(
        Sweep(stem or "size", dict(sorted(sizes.items(), key=lambda item: item[1])))
        for stem, sizes in found.items()
        if len(set(sizes.values())) >= FEWEST
    )


def by_size(names: Sequence[str]) -> list[str]:
    """Return names in their order, those of a sweep by size from where its first one stands."""
    sweeps = find_sweeps(names)
    places = {name: place for place, name in enumerate(names)}
    first = {
        name: min(places[each] for each in found.sizes) for found in sweeps for name in found.sizes
    }
    sizes = {name: size for found in sweeps for name, size in found.sizes.items()}
    return sorted(names, key=lambda name: (first.get(name, places[name]), sizes.get(name, 0)))


def _unit_bytes(unit: str) -> int:
    """Return a unit in bytes: kB is 1,000, KiB 1,024, and a bare k too, as fio and dd have it."""
    base = 1000 if unit.endswith("b") and "i" not in unit else 1024
    return int(base ** _POWERS.get(unit[:1], 0))
