"""What was measured so far: the running sum of intervals, per transaction.

An interval comes from one engine, or is the sum of several workers' intervals. The run folder is
the record; progress and Locust's statistics read the sum kept here.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from replayer._native import Histogram, Interval, Row

RATED_S = 0.5
"""Chosen: the first slice of a run may be one of a few milliseconds, and what ended in it says
nothing of a second."""
RECENT_INTERVALS = 5  # chosen: rates over about as many seconds follow the load and do not flicker
COUNTED = frozenset({"ok", "failed"})


def is_transaction(row: Row) -> bool:
    """Whether a row counts whole transactions that ended by themselves in a measured phase."""
    return row.op == "transaction" and row.phase == "measured" and row.outcome in COUNTED


@dataclass
class LiveLine:
    """One transaction on one target."""

    times: Histogram = field(default_factory=Histogram)
    """Of those that succeeded, as in reports."""
    errors: int = 0
    """Those that failed."""

    @property
    def count(self) -> int:
        """All that ended."""
        return self.times.count + self.errors

    def add(self, histogram: Histogram, *, expected: bool) -> None:
        """Add times that ended alike."""
        if expected:
            self.times.add(histogram)
        else:
            self.errors += histogram.count


@dataclass
class Ledger:
    """The running sum."""

    lines: dict[tuple[int, str], LiveLine] = field(default_factory=dict)
    """By target and transaction."""
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Calls that failed, by transaction, op and outcome."""
    calls: int = 0
    """Calls that were made, of all phases."""
    measured_calls: int = 0
    """Those of the measured phases."""
    _recent: deque[tuple[float, int]] = field(
        default_factory=lambda: deque(maxlen=RECENT_INTERVALS)
    )

    def begin_turn(self) -> None:
        """Another target's turn, or another round's, begins: rates are of what comes now."""
        self._recent.clear()

    def add(self, interval: Interval) -> None:
        """Add what one interval holds."""
        done = 0
        for row in interval.rows:
            if row.op == "transaction":
                done += row.histogram.count
            elif "." not in row.op:  # the times of transactions and events have one
                self.calls += row.histogram.count
                if row.phase == "measured":
                    self.measured_calls += row.histogram.count
            self._add_row(row)
        self._recent.append(((interval.end_ns - interval.start_ns) / 1e9, done))

    def take(
        self, place: tuple[int, str], histogram: Histogram, seconds: float, *, expected: bool
    ) -> None:
        """Add what another engine than our own did of one transaction, in so many seconds."""
        self.lines.setdefault(place, LiveLine()).add(histogram, expected=expected)
        if seconds:
            self._recent.append((seconds, histogram.count))

    @property
    def rate(self) -> float | None:
        """Transactions a second, over the last intervals; None while these are too short."""
        seconds = sum(length for length, _ in self._recent)
        return sum(done for _, done in self._recent) / seconds if seconds >= RATED_S else None

    @property
    def count(self) -> int:
        """Measured transactions so far."""
        return sum(line.count for line in self.lines.values())

    def _add_row(self, row: Row) -> None:
        if is_transaction(row):
            line = self.lines.setdefault((row.target, row.transaction), LiveLine())
            line.add(row.histogram, expected=row.expected)
        elif not row.expected and row.phase == "measured":
            self.errors[row.transaction, row.op, row.outcome] += row.histogram.count
