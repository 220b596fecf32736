"""What one transaction is expected to do, in numbers."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field


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
    """Room that a replay, or files that are removed again, need meanwhile and give back."""
    held_files: float = 0.0
    """Made by a replay or a transaction, which removes them again, at most at a time."""
    kept: Sequence[Kept] = ()
    """What takes room once for each name, however often it is written."""
    hoards: bool = False
    """Gives ever new names to files that others made, which are then made anew."""
    touched: set[tuple[int, int]] = field(default_factory=set)
    """Entries of laid-out datasets that may be used: (dataset, index)."""
