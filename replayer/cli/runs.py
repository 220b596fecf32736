"""``replayer runs``: the runs of a folder, and the names that some are kept under."""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from replayer.analysis.change_points import find_changes
from replayer.errors import ReplayerError
from replayer.measure.history import (
    MOST_RUNS,
    PastRun,
    find_run,
    forget_name,
    keep_ended_run,
    kept_runs,
    list_runs,
    names_by_run,
)
from replayer.measure.run import Headline
from replayer.measure.runfolder import PARENT
from replayer.measure.units import format_ratio, format_time_ns
from replayer.report.style import Column, Style, fold, lay_out_grid

_COLUMNS = (
    Column("run", 9),
    Column("when (UTC)", 3),
    Column("scenario", 8),
    Column("verdict", 7),
    Column("median", 6),
    Column("kept as", 4),
)
NAMING = "keep NAME RUN | forget NAME"
_SHOWN = 20  # chosen: lines that fit on a screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar=NAMING,
        help="keep a run under a name of yours, or forget the name again; the run stays",
    )
    parser.add_argument(
        "--in",
        dest="folder",
        type=Path,
        default=PARENT,
        metavar="DIR",
        help=f"folder that holds the runs (default: ./{PARENT})",
    )
    parser.add_argument(
        "--all", action="store_true", help=f"list {MOST_RUNS} runs instead of the newest {_SHOWN}"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """List the runs, keep one, or forget a name."""
    if arguments.words:
        print(_name(arguments.words, arguments.folder))
        return 0
    found = list_runs(arguments.folder)
    changes = [*_changes(found)]
    if arguments.json:
        kept = {name: str(path) for name, path in kept_runs(arguments.folder).items()}
        runs = [_describe(past) for past in found]
        print(
            json.dumps(
                {"runs": runs, "kept": kept, "changes": [asdict(each) for each in changes]},
                indent=2,
            )
        )
        return 0
    if not found:
        print(f"no runs in {arguments.folder}", file=sys.stderr)
        return 0
    shown = found if arguments.all else found[:_SHOWN]
    style = Style.of(sys.stdout)
    for line in _table(shown, arguments.folder, style):
        print(style.fit(line))
    for line in fold(map(str, changes), style):
        print(style.fit(line))
    if len(found) > len(shown):
        print(f"{len(found) - len(shown)} older ones with --all", file=sys.stderr)
    return 0


def _name(words: Sequence[str], folder: Path) -> str:
    match words:
        case ["keep", name, word]:
            path = find_run(word, folder)
            before = keep_ended_run(name, path, folder)
            was = f" (before: {before.name})" if before is not None else ""
            return f"{name} is {path.name}{was}"
        case ["forget", name]:
            return f"{name} was {forget_name(name, folder).name}, which stays"
        case _:
            message = f"replayer runs {' '.join(words)}: not understood"
            raise ReplayerError(message, hint="replayer runs keep NAME RUN, or forget NAME")


def _table(runs: Sequence[PastRun], folder: Path, style: Style) -> tuple[str, ...]:
    names = names_by_run(folder)
    rows = [
        (
            past.name,
            past.run.began.replace("T", " ").removesuffix("Z"),
            past.run.plan.name,
            past.run.verdict or past.run.status,
            ", ".join(_median(each) for each in past.run.headlines),
            ", ".join(names.get((folder / past.name).resolve(), ())),
        )
        for past in runs
    ]
    return lay_out_grid(_COLUMNS, rows, style).lines


def _median(headline: Headline) -> str:
    value = "too few" if headline.p50_ns is None else format_time_ns(headline.p50_ns)
    return f"{headline.target} {value}"


def _describe(past: PastRun) -> dict[str, object]:
    run = past.run
    return {
        "run": past.name,
        "began": run.began,
        "scenario": run.plan.name,
        "targets": [target.name for target in run.targets],
        "status": run.status,
        "verdict": run.verdict,
        "headlines": [each.model_dump() for each in run.headlines],
    }


@dataclass(frozen=True)
class SeriesChange:
    """Since which run a median of the same work on the same target is another."""

    scenario: str
    target: str
    what: str
    """Of what the median is."""
    since: str
    ratio: float
    """How many times as long it is since."""
    runs: int
    """How many the series has."""

    def __str__(self) -> str:
        return (
            f"changed  {self.scenario} on {self.target}: since {self.since} the median of "
            f"{self.what} is {format_ratio(self.ratio)} times as long ({self.runs} runs)"
        )


def _changes(runs: Sequence[PastRun]) -> Iterator[SeriesChange]:
    series: dict[tuple[str, str, str], list[tuple[str, float]]] = defaultdict(list)
    names = {past.run.plan.fingerprint: past.run.plan.name for past in runs}
    for past in reversed(runs):
        for each in past.run.headlines:
            if each.p50_ns and past.run.status == "finished":
                key = (past.run.plan.fingerprint, each.target, each.what)
                series[key].append((past.name, each.p50_ns))
    for (fingerprint, target, what), points in series.items():
        for change in find_changes([value for _, value in points]):
            since = points[change.place][0]
            yield SeriesChange(names[fingerprint], target, what, since, change.ratio, len(points))
