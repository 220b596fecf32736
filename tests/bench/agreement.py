"""The engine beside fio on the same patterns: do both measure the same file system?

They take turns on the same files, so that what disturbs one disturbs the other, and ratios are
those of pairs. Each of them also does I/Os that do nothing: the time that it takes for nothing is
taken off its p99, and the twin computes after each I/O for as long as fio does. fio is a program
with work of its own between two I/Os, and a twin of a program takes its time as well.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from tests.bench.twins import PATTERNS, Cost, Native, Pattern, Reading, own_costs, run_fio

LIMIT = 0.05
"""What is promised: within 5 %."""


@dataclass(frozen=True)
class Agreement:
    """One pattern on one file system: medians of turns, and the ratios engine / fio.

    Other work on the machine only ever makes a turn slower, so what the two say of the file system
    is compared by the best turn of each; pairs show how much they were disturbed.

    Attributes:
        arena: File system.
        pattern: Its name.
        turns: How many pairs there were.
        native: The engine's medians.
        fio: fio's medians.
        costs: What the engine and fio take for an I/O that does nothing.
        computing_ns: How long the twin computed after each I/O, to be as busy as fio.
        best_iops: Ratio of the highest rates.
        best_p50: Ratio of the lowest medians.
        best_p99: Ratio of the lowest 99th percentiles, without what each takes for nothing.
        iops: Ratio in pairs: first quartile, median, third quartile.
        p99: The same of 99th percentiles.
        noise: p99 of the same tool from one turn to another: half the interquartile range of the
            ratios of neighbouring turns, both tools together.
    """

    arena: str
    pattern: str
    turns: int
    native: Reading
    fio: Reading
    costs: tuple[Cost, Cost]
    computing_ns: int
    best_iops: float
    best_p50: float
    best_p99: float
    iops: tuple[float, float, float]
    p99: tuple[float, float, float]
    noise: float

    def passes(self) -> bool:
        return not self._apart()

    def row(self) -> str:
        where = f"{self.arena:<6} {self.pattern:<18}"
        rates = f"{self.native.iops:>9,.0f} {self.fio.iops:>9,.0f}"
        times = f"{self.native.p99_ns / 1e3:>9,.1f} {self.fio.p99_ns / 1e3:>9,.1f}"
        best = f"{self.best_iops:>6.3f} {self.best_p50:>6.3f} {self.best_p99:>6.3f}"
        pairs = (
            f"{low:.2f}-{middle:.2f}-{high:.2f}" for low, middle, high in (self.iops, self.p99)
        )
        own = (
            f"{self.native.between_ns:>8,.0f} {self.fio.between_ns:>8,.0f} {self.computing_ns:>6,}"
        )
        apart = self._apart()
        verdict = f"{' and '.join(apart)} apart" if apart else "within 5 %"
        shown = "  ".join(f"{text:<16}" for text in pairs)
        return f"{where}{rates} {times}  {best}   {shown} {self.noise:>6.1%} {own}  {verdict}"

    def _apart(self) -> list[str]:
        ratios = {"IOPS": self.best_iops, "p99": self.best_p99}
        return [name for name, ratio in ratios.items() if abs(ratio - 1) > LIMIT]

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


HEADER = (
    "                            median IOPS        median p99, µs      best turns            "
    "pairs: IOPS       p99               noise    between I/Os, ns  computed\n"
    "where  pattern              engine       fio    engine       fio    IOPS    p50    p99"
    "                                      of p99   engine      fio"
)


def agreements(arena: str, folder: Path, record: Path, turns: int) -> Iterator[Agreement]:
    """Measure every pattern in turns, and yield what came out of each."""
    for pattern in PATTERNS:
        place = folder / pattern.name
        place.mkdir()
        native_cost, fio_cost, computing_ns = own_costs(pattern, place, record)
        with Native(pattern, place, record, computing_ns) as native:
            pairs = [_pair(native, pattern, turn) for turn in range(turns)]
        shutil.rmtree(place)
        yield _agreement((arena, pattern.name), pairs, (native_cost, fio_cost), computing_ns)


def _pair(native: Native, pattern: Pattern, turn: int) -> tuple[Reading, Reading]:
    """Let both measure, each of them first in every second turn."""
    if turn % 2:
        theirs = run_fio(pattern, native.files())
        return native.measure(), theirs
    return native.measure(), run_fio(pattern, native.files())


def _agreement(
    place: tuple[str, str],
    pairs: Sequence[tuple[Reading, Reading]],
    costs: tuple[Cost, Cost],
    computing_ns: int,
) -> Agreement:
    native, fio = zip(*pairs, strict=True)
    own, theirs_own = (cost.within_ns for cost in costs)
    return Agreement(
        arena=place[0],
        pattern=place[1],
        turns=len(pairs),
        native=_median(native),
        fio=_median(fio),
        costs=costs,
        computing_ns=computing_ns,
        best_iops=max(each.iops for each in native) / max(each.iops for each in fio),
        best_p50=_lowest(native, "p50_ns", own) / _lowest(fio, "p50_ns", theirs_own),
        best_p99=_lowest(native, "p99_ns", own) / _lowest(fio, "p99_ns", theirs_own),
        iops=_ratio([mine.iops / theirs.iops for mine, theirs in pairs]),
        p99=_ratio([(a.p99_ns - own) / (b.p99_ns - theirs_own) for a, b in pairs]),
        noise=_noise(native, fio),
    )


def _lowest(readings: Sequence[Reading], figure: str, own_ns: float) -> float:
    """Return the lowest of a figure, without what the tool takes for nothing."""
    return min(float(getattr(reading, figure)) for reading in readings) - own_ns


def _median(readings: Sequence[Reading]) -> Reading:
    rows = [asdict(reading) for reading in readings]
    return Reading(**{name: median(row[name] for row in rows) for name in rows[0]})


def _ratio(ratios: Sequence[float]) -> tuple[float, float, float]:
    low, _, high = quantiles(ratios, n=4)
    return low, median(ratios), high


def _noise(*series: Sequence[Reading]) -> float:
    """Return how far p99 of one and the same tool goes apart between neighbouring turns."""
    ratios = [
        after.p99_ns / before.p99_ns for readings in series for before, after in pairwise(readings)
    ]
    low, _, high = quantiles(ratios, n=4)
    return (high - low) / 2
