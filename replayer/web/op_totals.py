"""File operations as the page shows them: per target, transaction and op, what was measured so far.

Fed interval by interval. The run folder is the record; reports are made from that, not from here.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from replayer._native import Histogram, Interval, Row
from replayer.measure.hlog import CANCELLED, FOUND_END
from replayer.measure.summary import PERCENTILE_SAMPLES
from replayer.run.ledger import COUNTED, RECENT_INTERVALS

WHOLE = "transaction"
"""The op under which the engine counts whole transactions."""
PERCENTS = {"p50_ns": 50.0, "p95_ns": 95.0, "p99_ns": 99.0, "p99_9_ns": 99.9}

Key = tuple[int, str, str]
"""Target, transaction, op."""


def is_shown(row: Row) -> bool:
    """Whether a row is of a call, or of a whole transaction, that ended by itself."""
    if row.op == WHOLE:
        return row.outcome in COUNTED
    op: str = row.op  # the stub's literal says less than other engines may send
    return row.outcome != CANCELLED and not op.startswith("transaction")


def supported(histogram: Histogram) -> dict[str, int | None]:
    """Return the percentiles that there are samples enough for; None for the others."""
    return {
        name: histogram.percentile(percent) if histogram.count >= PERCENTILE_SAMPLES[name] else None
        for name, percent in PERCENTS.items()
    }


@dataclass
class OpLine:
    """One op of one transaction on one target."""

    times: Histogram = field(default_factory=Histogram)
    """Of those that succeeded."""
    errors: Counter[str] = field(default_factory=Counter)
    ends: int = 0
    bytes: int = 0

    @property
    def count(self) -> int:
        """All that ended, with those that only found an end."""
        return self.times.count + self.ends + self.errors.total()

    def add(self, row: Row) -> None:
        """Add what an interval has of it."""
        self.bytes += row.bytes
        if row.outcome == FOUND_END:
            self.ends += row.histogram.count
        elif row.expected:
            self.times.add(row.histogram)
        else:
            self.errors[row.outcome] += row.histogram.count


@dataclass
class _Late:
    """What ended in one of the last intervals."""

    seconds: float
    counts: Counter[Key] = field(default_factory=Counter)
    bytes: Counter[Key] = field(default_factory=Counter)


@dataclass
class OpTotals:
    """The running sum of the measured phases."""

    lines: dict[Key, OpLine] = field(default_factory=dict)
    """One for each op of each transaction on each target."""
    active: frozenset[int] = frozenset()
    """The targets that had their turn last."""
    _recent: dict[int, deque[_Late]] = field(default_factory=dict)

    def add(self, interval: Interval) -> None:
        """Add what one interval measured; one in which nothing ended is the same target's."""
        late = _Late((interval.end_ns - interval.start_ns) / 1e9)
        rows = [row for row in interval.rows if is_shown(row)]
        self.active = frozenset(row.target for row in rows) or self.active
        for row in rows:
            if row.phase == "measured":
                key = (row.target, row.transaction, row.op)
                self.lines.setdefault(key, OpLine()).add(row)
                late.counts[key] += row.histogram.count
                late.bytes[key] += row.bytes
        for target in self.active:
            self._recent.setdefault(target, deque(maxlen=RECENT_INTERVALS)).append(late)

    def rows(self) -> Iterator[tuple[Key, OpLine, float, float]]:
        """Yield each line with rate and bytes a second at the end of its target's last turn."""
        for key in sorted(self.lines, key=_in_order):
            recent = self._recent.get(key[0], ())
            seconds = sum(late.seconds for late in recent) or 1.0
            ended = sum(late.counts[key] for late in recent)
            moved = sum(late.bytes[key] for late in recent)
            yield key, self.lines[key], ended / seconds, moved / seconds


def _in_order(key: Key) -> tuple[int, str, bool, str]:
    target, transaction, op = key
    return target, transaction, op != WHOLE, op
