"""Seconds as the page draws them: latency, throughput, errors, users and calls that hang.

A column is one interval of the engine. The latest half hour is kept; the run folder holds it all.
A percentile is that of the interval's own histogram, or of as many intervals together as it needs;
nothing is averaged.
"""

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from replayer._native import Histogram, Interval, Row
from replayer.analysis.slots import STUMP, Widening
from replayer.measure.summary import PERCENTILE_SAMPLES
from replayer.web.op_totals import PERCENTS, WHOLE, Key, OpLine, is_shown

MOST_COLUMNS = 1800
"""Chosen: half an hour of seconds, as wide as a large screen has points."""
USUAL_S = 1.0
"""How long an interval of the engine is, unless a phase ends before."""
BINS_PER_DECADE = 10
"""Chosen: a bin of the heat map is a quarter higher than the one below it."""


Figure = int | tuple[int, int] | None
"""A time; of several columns together, the last of them has it, with their number."""


@dataclass(frozen=True)
class Cell:
    """One op of one transaction in one interval."""

    count: int
    errors: int
    bytes: int
    times: dict[str, Figure]
    """p50_ns, p95_ns, p99_ns, p99_9_ns and max_ns of those that succeeded."""
    heat: tuple[tuple[int, int], ...]
    """How many fell into each bin; bin b begins at 10 ** (b / BINS_PER_DECADE) ns."""


@dataclass(frozen=True)
class SecondColumn:
    """One interval."""

    number: int
    """Counted from 0; the page asks for what follows the one it has."""
    end_s: float
    """Since the engine's begin."""
    seconds: float
    users: int
    measured: bool
    hanging: int
    """Most calls that hung at once in it."""
    targets: frozenset[int]
    """Whose turn it was."""
    cells: dict[Key, Cell]

    def errors_on(self, target: int) -> int:
        """Return how many calls failed on a target."""
        return sum(
            cell.errors for key, cell in self.cells.items() if key[0] == target and key[2] != WHOLE
        )

    @property
    def is_stump(self) -> bool:
        """Whether it is what is left at the end of a phase: its rates are those of few calls."""
        return self.seconds < STUMP * USUAL_S


@dataclass
class RunSeries:
    """The columns of a run, latest last."""

    columns: deque[SecondColumn] = field(default_factory=lambda: deque(maxlen=MOST_COLUMNS))
    keys: dict[Key, None] = field(default_factory=dict)
    _next: int = 0
    _percentiles: dict[tuple[Key, str], "_Percentile"] = field(default_factory=dict)

    def add(self, interval: Interval, hanging: int, targets: frozenset[int]) -> None:
        """Add an interval, with the most calls that hung at once meanwhile.

        ``targets`` are those whose turn it is, also when nothing ended.
        """
        rows = [row for row in interval.rows if is_shown(row)]
        grouped: dict[Key, list[Row]] = {}
        for row in rows:
            grouped.setdefault((row.target, row.transaction, row.op), []).append(row)
        self.keys.update(dict.fromkeys(grouped))
        self.columns.append(
            SecondColumn(
                number=self._next,
                end_s=interval.end_ns / 1e9,
                seconds=(interval.end_ns - interval.start_ns) / 1e9,
                users=interval.users,
                measured=all(row.phase == "measured" for row in rows),
                hanging=hanging,
                targets=targets,
                cells={key: self._cell(key, found) for key, found in grouped.items()},
            )
        )
        self._next += 1

    def after(self, number: int) -> Sequence[SecondColumn]:
        """Return the columns that follow one; -1: all that are kept."""
        if not self.columns:
            return ()
        skipped = max(number + 1 - self.columns[0].number, 0)
        return tuple(islice(self.columns, skipped, None))

    def _cell(self, key: Key, rows: Sequence[Row]) -> Cell:
        line = OpLine()
        for row in rows:
            line.add(row)
        times = line.times
        turn = (rows[-1].round, rows[-1].phase)
        return Cell(
            count=line.count,
            errors=line.errors.total(),
            bytes=line.bytes,
            times={
                **{
                    name: self._percentile(key, name).take(self._next, turn, times)
                    for name in PERCENTS
                },
                "max_ns": times.max if times.count else None,
            },
            heat=_heat(times),
        )

    def _percentile(self, key: Key, name: str) -> "_Percentile":
        return self._percentiles.setdefault((key, name), _Percentile(name))


class _Percentile:
    """One percentile of one key, over as many columns as it takes."""

    def __init__(self, name: str) -> None:
        self._percent = PERCENTS[name]
        self._widening = Widening(PERCENTILE_SAMPLES[name])
        self._held: Histogram | None = None
        self._turn: tuple[int, str] | None = None

    def take(self, column: int, turn: tuple[int, str], times: Histogram) -> Figure:
        """Take the times of a column; return the percentile that is whole with them."""
        if turn != self._turn:
            self._widening.cut()
            self._turn, self._held = turn, None
        if self._held is not None:
            self._held.add(times)
        joined = self._widening.add(column, times.count)
        if joined is None:
            self._held = times.copy() if self._held is None else self._held
            return None
        found = (times if self._held is None else self._held).percentile(self._percent)
        self._held = None
        return found if len(joined) == 1 else (found, len(joined))


def _heat(times: Histogram) -> tuple[tuple[int, int], ...]:
    bins: Counter[int] = Counter()
    for value_ns, count in times.buckets():
        bins[int(math.log10(max(value_ns, 1)) * BINS_PER_DECADE)] += count
    return tuple(sorted(bins.items()))
