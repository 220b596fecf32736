"""The race: how the targets of a run stand beside each other, as far as it has gone.

What differs is read from the run folder as a report reads it, in a thread, and so seldom that it
takes at most a fiftieth of a CPU. Seconds are those that the engine hands over anyway.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replayer.analysis.explain import explain
from replayer.errors import ReplayerError
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.measure.summary import TransactionSummary
from replayer.report.document import ComparedFigure
from replayer.report.duet import with_duet
from replayer.report.explaining import lines_of, title_of
from replayer.report.ranking import RunRanking, rank, rank_pairs
from replayer.run.threads import call_in_thread
from replayer.web.op_totals import WHOLE, Key, OpTotals
from replayer.web.series import RunSeries, SecondColumn

REST = 50
"""A look rests so many times as long as it took: 2 % of one CPU at most."""
LEAST_REST_S = 1.0  # chosen: more often nobody reads it
SHOWN = ("p50", "p95")
MOST_BEFORE = 12  # chosen: so many intervals above each other can be seen to narrow
MOST_LOOKS = 200
"""Chosen: of more, every other one is dropped."""


@dataclass(frozen=True)
class Look:
    """How the targets stood at a time."""

    at_s: float
    """Since the first look."""
    figures: tuple[ComparedFigure, ...]
    """Those that are shown of all transactions together, or of each; none of a single target."""
    own: tuple[Mapping[str, Any], ...]
    """The transaction of each target that ended most often, with its p50 and p95."""
    mounts: tuple[str, ...]
    """File system and source of each target."""
    rounds: tuple[int, int]
    """How many have begun, and of how many."""


@dataclass
class Race:
    """The looks at one run."""

    looks: list[Look] = field(default_factory=list)
    is_over: bool = False
    """Whether the last one saw the end of the run."""
    _begin_s: float = field(default_factory=time.monotonic)
    _next_s: float = 0.0
    _is_looking: bool = False

    def look(self, folder: Path, *, is_over: bool) -> None:
        """Look again, unless somebody does or has just done so."""
        begin_s = time.monotonic()
        is_due = begin_s >= self._next_s or is_over
        if self._is_looking or self.is_over or not is_due:
            return
        self._is_looking = True
        try:
            self.looks.append(call_in_thread(_look, folder, begin_s - self._begin_s))
            self.is_over = is_over
        except ReplayerError:
            self.is_over = is_over  # it has nothing that can be read
        finally:
            self._is_looking = False
            now_s = time.monotonic()
            self._next_s = now_s + max(REST * (now_s - begin_s), LEAST_REST_S)
        if len(self.looks) > MOST_LOOKS:
            self.looks = self.looks[:1] + self.looks[2::2]


def _look(folder: Path, at_s: float) -> Look:
    record = with_duet(load_run(folder))
    summary = summarise(record)
    rankings = rank_pairs(record, summary) or [rank(record, summary)]
    return Look(
        at_s,
        tuple(figure for ranking in rankings for figure in _shown(ranking)),
        tuple(_own(target.overall.transactions) for target in summary.targets),
        tuple(
            f"{each.mounts[0].filesystem} {each.mounts[0].source}" if each.mounts else ""
            for each in record.run.targets
        ),
        (
            max((len(target.rounds) for target in summary.targets), default=0),
            record.run.load.rounds,
        ),
    )


def _shown(ranking: RunRanking) -> list[ComparedFigure]:
    found = [each for each in ranking.figures if each.figure in SHOWN]
    whole = [each for each in found if each.kind == "all transactions"]
    return whole or [each for each in found if each.kind == "transaction"]


def _own(transactions: Sequence[TransactionSummary]) -> dict[str, Any]:
    found = max(transactions, key=lambda each: each.count, default=None)
    if found is None:
        return {}
    times = {f"{name}_ns": getattr(found.latency, f"{name}_ns") for name in SHOWN}
    return {"transaction": found.name, **times}


def describe_looks(race: Race) -> dict[str, Any]:
    """Return how the targets stand, and how the intervals came to be, as JSON."""
    if not race.looks:
        return {"mounts": [], "rounds": None, "own": [], "figures": []}
    last = race.looks[-1]
    return {
        "mounts": last.mounts,
        "rounds": last.rounds,
        "own": last.own,
        "figures": [_describe(each, race.looks) for each in last.figures],
    }


def _describe(figure: ComparedFigure, looks: Sequence[Look]) -> dict[str, Any]:
    return {
        "subject": figure.subject if figure.kind == "transaction" else "all transactions",
        "figure": figure.figure,
        "standings": [
            {
                "target": row.label,
                "value_ns": row.value,
                "ratio": row.ratio,
                "low": row.ratio_low,
                "high": row.ratio_high,
                "claim": row.claim,
                "before": _intervals(figure, row.label, looks)[-MOST_BEFORE:],
            }
            for row in figure.standings
        ],
    }


def _intervals(
    figure: ComparedFigure, label: str, looks: Sequence[Look]
) -> list[tuple[float, float, float]]:
    """Return when each interval of a target was known, and its bounds."""
    return [
        (round(look.at_s, 1), row.ratio_low, row.ratio_high)
        for look in looks
        for each in look.figures
        if (each.subject, each.figure) == (figure.subject, figure.figure)
        for row in each.standings
        if row.label == label and row.ratio_low is not None and row.ratio_high is not None
    ]


def describe_lanes(series: RunSeries, totals: OpTotals, targets: int, after: int) -> dict[str, Any]:
    """Return the seconds of each target that follow one, as JSON; times in nanoseconds.

    All lanes have the transaction that ended most often on all of them.
    """
    columns, name = series.after(after), _commonest(totals)
    return {
        "last": columns[-1].number if columns else after,
        "transaction": name,
        "begin": [round(column.end_s - column.seconds, 3) for column in columns],
        "end": [round(column.end_s, 3) for column in columns],
        "lanes": [_lane(columns, (target, name, WHOLE)) for target in range(targets)],
    }


def _commonest(totals: OpTotals) -> str:
    counts: Counter[str] = Counter()
    for (_, transaction, op), line in totals.lines.items():
        if op == WHOLE:
            counts[transaction] += line.count
    return max(counts, key=lambda name: (counts[name], name), default="")


def _lane(columns: Sequence[SecondColumn], key: Key) -> dict[str, Any]:
    cells, target = [column.cells.get(key) for column in columns], key[0]
    return {
        **{name: [cell and cell.times[f"{name}_ns"] for cell in cells] for name in SHOWN},
        "errors": [column.errors_on(target) for column in columns],
        "turn": [target in column.targets for column in columns],
        "measured": [column.measured for column in columns],
        "hanging": [column.hanging if target in column.targets else 0 for column in columns],
    }


def explain_moment(folder: Path, target: int, begin_s: float, end_s: float) -> dict[str, Any]:
    """Return what made the latency of a moment of a run that may go on, as JSON.

    Raises:
        ReplayerError: The run cannot be read.
    """
    (found,) = explain(load_run(folder), target, [(begin_s, end_s)])
    return {"title": title_of(found), "lines": [*lines_of(found)]}
