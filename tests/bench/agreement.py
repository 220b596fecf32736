"""The engine beside fio on the same patterns: do both measure the same file system?

They take turns on the same files, so that what disturbs one disturbs the other, and ratios are
those of pairs. Each of them also does I/Os that do nothing: the time that it takes for nothing is
taken off its p99. The twin computes after each I/O for as long as fio does: fio is a program with
work of its own between two I/Os, and a twin of a program takes its time as well.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from tests.bench.arena import apart
from tests.bench.twins import (
    PATTERNS,
    Cost,
    Native,
    Pattern,
    Reading,
    computing,
    own_costs,
    run_fio,
)

LIMIT = 0.05
"""What is promised: within 5 %."""


@dataclass(frozen=True)
class Agreement:
    """One pattern on one file system: medians of turns, and the ratios engine / fio in pairs.

    The machine is now faster, now slower, for seconds: a pair has both of it, so the median of
    pairs is what is judged, and not the best turn of each.

    Attributes:
        arena: File system.
        pattern: Its name.
        turns: How many pairs there were.
        native: The engine's medians.
        fio: fio's medians.
        costs: What the engine and fio take for an I/O that does nothing.
        computing_ns: How long the twin computed after each I/O, to be as busy as fio.
        iops: Ratio in pairs: first quartile, median, third quartile.
        p50: The same of median times, without what each takes for nothing.
        p99: The same of 99th percentiles.
        noise: IOPS and p99 of the same tool from one turn to another: half the interquartile range
            of the ratios of neighbouring turns, both tools together.
    """

    arena: str
    pattern: str
    turns: int
    native: Reading
    fio: Reading
    costs: tuple[Cost, Cost]
    computing_ns: int
    iops: tuple[float, float, float]
    p50: tuple[float, float, float]
    p99: tuple[float, float, float]
    noise: tuple[float, float]

    def passes(self) -> bool:
        return not self._beyond(0.0, 0.0)

    def row(self) -> str:
        where = f"{self.arena:<6} {self.pattern:<18}"
        rates = f"{self.native.iops:>9,.0f} {self.fio.iops:>9,.0f}"
        times = f"{self.native.p99_ns / 1e3:>9,.1f} {self.fio.p99_ns / 1e3:>9,.1f}"
        found = (self.iops, self.p50, self.p99)
        pairs = (f"{low:.2f}-{middle:.2f}-{high:.2f}" for low, middle, high in found)
        own = (
            f"{self.native.between_ns:>8,.0f} {self.fio.between_ns:>8,.0f} {self.computing_ns:>6,}"
        )
        shown = "  ".join(f"{text:<16}" for text in pairs)
        noise = " ".join(f"{each:>6.1%}" for each in self.noise)
        return f"{where}{rates} {times}   {shown} {noise} {own}  {self._verdict()}"

    def _verdict(self) -> str:
        if apart := self._beyond(*self.noise):
            return f"{' and '.join(apart)} apart"
        if untold := self._beyond(0.0, 0.0):
            return f"{' and '.join(untold)}: no more apart than turns of one tool"
        return "within 5 %"

    def _beyond(self, *noise: float) -> list[str]:
        """Name what is further apart than promised, and than so much noise makes two turns."""
        limits = (max(LIMIT, each) for each in noise)
        rows = zip(("IOPS", "p99"), (self.iops, self.p99), limits, strict=True)
        return [name for name, (_, ratio, _), limit in rows if abs(ratio - 1) > limit]

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


HEADER = (
    "                            median IOPS        median p99, µs      "
    "pairs: IOPS       p50               p99               noise of    between I/Os, ns  computed\n"
    "where  pattern              engine       fio    engine       fio   "
    "                                                       IOPS    p99   engine      fio"
)


def agreements(arena: str, folder: Path, record: Path, turns: int) -> Iterator[Agreement]:
    """Measure every pattern in turns, and yield what came out of each."""
    for each in PATTERNS:
        pattern = replace(each, has_device=arena != "tmpfs")
        place = folder / pattern.name
        place.mkdir()
        with apart() if pattern.users == 1 else nullcontext() as cpu:
            costs = own_costs(pattern, place, record, cpu)
            computing_ns = computing(pattern, place, record, cpu)
            with Native(pattern, place, record, computing_ns) as native:
                pairs = [_pair(native, pattern, turn, cpu) for turn in range(turns)]
        shutil.rmtree(place)
        yield _agreement((arena, pattern.name), pairs, costs, computing_ns)


def _pair(native: Native, pattern: Pattern, turn: int, cpu: int | None) -> tuple[Reading, Reading]:
    """Let both measure, each of them first in every second turn, on a CPU of their own or any."""
    if turn % 2:
        theirs = run_fio(pattern, native.files(), cpu=cpu)
        return native.measure(cpu=cpu), theirs
    return native.measure(cpu=cpu), run_fio(pattern, native.files(), cpu=cpu)


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
        iops=_ratio([mine.iops / theirs.iops for mine, theirs in pairs]),
        p50=_ratio([(a.p50_ns - own) / (b.p50_ns - theirs_own) for a, b in pairs]),
        p99=_ratio([(a.p99_ns - own) / (b.p99_ns - theirs_own) for a, b in pairs]),
        noise=(_noise("iops", native, fio), _noise("p99_ns", native, fio)),
    )


def _median(readings: Sequence[Reading]) -> Reading:
    rows = [asdict(reading) for reading in readings]
    return Reading(**{name: median(row[name] for row in rows) for name in rows[0]})


def _ratio(ratios: Sequence[float]) -> tuple[float, float, float]:
    low, _, high = quantiles(ratios, n=4)
    return low, median(ratios), high


def _noise(figure: str, *series: Sequence[Reading]) -> float:
    """Return how far a figure of one and the same tool goes apart between neighbouring turns."""
    values = [[float(getattr(reading, figure)) for reading in readings] for readings in series]
    ratios = [after / before for each in values for before, after in pairwise(each)]
    low, _, high = quantiles(ratios, n=4)
    return (high - low) / 2
