"""Races: contenders take turns at the same work, so that what disturbs one disturbs all."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from tests.bench import contenders, plans

TOTAL_FILES = 16_000
"""Of a heat, all users together: some 100 ms, shorter than most of what disturbs a machine."""
BATCHES = (100, 1)
LIFE = (plans.CREATE, plans.STAT, plans.READ_BACK, plans.UNLINK)
TARGETS = {"C timed": 0.95, "C bare": 0.90, "fio": 1.0}


@dataclass(frozen=True)
class Duel:
    """The engine against one contender in one discipline.

    Attributes:
        arena: File system.
        users: Users or threads.
        work: Discipline.
        batch: Files a transaction of the engine's.
        rival: Whom the engine is compared with.
        engine: Files a second, median.
        other: The rival's files a second, median.
        ratio: Median over the turns of engine / rival.
        low: First quartile of these ratios.
        high: Third quartile.
    """

    arena: str
    users: int
    work: str
    batch: int
    rival: str
    engine: float
    other: float
    ratio: float
    low: float
    high: float

    def passes(self) -> bool:
        return self.ratio >= TARGETS[self.rival]

    def row(self) -> str:
        verdict = "ok" if self.passes() else f"below {TARGETS[self.rival]:.2f}"
        figures = f"{self.engine:>10,.0f} {self.other:>10,.0f}   {self.ratio:5.2f}"
        spread = f"({self.low:.2f} to {self.high:.2f})"
        where = f"{self.arena:<6} {self.users:>3}  {self.work:<10} {self.batch:>5}  {self.rival:<8}"
        return f"{where} {figures}  {spread:<16} {verdict}"

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


HEADER = "where    n  work       batch  rival      engine/s    rival/s   ratio"


@dataclass(frozen=True)
class Place:
    """Where a race takes place.

    Attributes:
        arena: Name of the file system.
        folder: On it.
        record: Where the engine records: elsewhere.
    """

    arena: str
    folder: Path
    record: Path


def race_c(place: Place, users: int, turns: int, binary: Path) -> list[Duel]:
    """Let the engine and both forms of the C program create, stat, read and unlink in turns."""
    natives = _natives(place)
    yardsticks = [contenders.Yardstick(binary, place.folder, clock) for clock in ("timed", "bare")]
    field: list[contenders.Contender] = [*natives, *yardsticks]
    rates = _take_turns(field, users, turns)
    _leave(natives)
    return [
        duel for work in LIFE for duel in _duels(rates[work.name], (place.arena, users, work.name))
    ]


def race_fio(place: Place, users: int, turns: int) -> list[Duel]:
    """Let the engine and fio's file engines create, stat and delete files in turns."""
    natives = _natives(place)
    field: list[contenders.Contender] = [*natives, contenders.Fio(place.folder)]
    rates: dict[str, dict[str, list[float]]] = {}
    for _ in range(turns):
        for work in (plans.FIO_CREATE, plans.STAT, plans.UNLINK):
            heat = contenders.Heat(work, users, TOTAL_FILES // users)
            _measure(field, heat, rates.setdefault(work.name, {}))
    _leave(natives)
    return [
        duel for work, found in rates.items() for duel in _duels(found, (place.arena, users, work))
    ]


def _take_turns(
    field: Sequence[contenders.Contender], users: int, turns: int
) -> dict[str, dict[str, list[float]]]:
    rates: dict[str, dict[str, list[float]]] = {}
    for turn in range(turns):
        shift = turn % len(field)
        order = [*field[shift:], *field[:shift]]
        for work in LIFE:
            heat = contenders.Heat(work, users, TOTAL_FILES // users)
            _measure(order, heat, rates.setdefault(work.name, {}))
    return rates


def _measure(
    order: Sequence[contenders.Contender], heat: contenders.Heat, rates: dict[str, list[float]]
) -> None:
    for contender in order:
        os.sync()
        rates.setdefault(contender.name, []).append(contender.run(heat))


def _natives(place: Place) -> list[contenders.Native]:
    return [contenders.Native(place.folder, place.record, batch) for batch in BATCHES]


def _leave(natives: Sequence[contenders.Native]) -> None:
    for native in natives:
        native.leave()


def _duels(rates: dict[str, list[float]], where: tuple[str, int, str]) -> list[Duel]:
    rivals = {name: others for name, others in rates.items() if not name.startswith("engine/")}
    return [
        _duel(rates[f"engine/{batch}"], others, (*where, batch, rival))
        for batch in BATCHES
        for rival, others in rivals.items()
    ]


def _duel(
    own: Sequence[float], others: Sequence[float], where: tuple[str, int, str, int, str]
) -> Duel:
    ratios = [mine / theirs for mine, theirs in zip(own, others, strict=True)]
    low, _, high = quantiles(ratios, n=4)
    return Duel(*where, median(own), median(others), median(ratios), low, high)
