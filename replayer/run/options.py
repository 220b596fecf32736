"""The options of a run, declared once for ``replayer run`` and for Locust's own command line.

Locust's options (users, spawn rate, run time, stop timeout, CSV, HTML) keep their names. What was
chosen goes on as frozen ``Settings``.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from replayer.errors import ReplayerError
from replayer.measure.credits import CREDITS_HELP, check_credits
from replayer.measure.history import find_run
from replayer.report.decision import PRECISION
from replayer.report.forms import ReportFiles
from replayer.report.regression import TOLERANCE, KeptRun
from replayer.run.neighbour import NeighbourOrder, read_neighbour

Pace = Literal["asap", "closed", "timed", "open"]
MAX_LOOPS = 1_000_000_000  # chosen: a page view of a millisecond, for more than a week


class Parser(Protocol):
    """Something that takes declarations of arguments."""

    def add_argument(self, *name_or_flags: str, **kwargs: Any) -> object:  # noqa: ANN401 - theirs
        """Declare one argument."""

    def add_mutually_exclusive_group(self) -> "Parser":
        """Return where arguments are declared of which at most one may be given."""


LocustOptions = Mapping[str, tuple[str | None, str]]
"""Options of Locust's parser that a command of ours has not, by name: what their value is called
(None: they have none), and their help."""


def add_locust_options(parser: Parser, options: LocustOptions) -> None:
    """Declare them; their values are checked by Locust."""
    for name, (metavar, text) in options.items():
        word = f"--{name.replace('_', '-')}"
        if metavar is None:
            parser.add_argument(word, action="store_true", help=text)
        else:
            parser.add_argument(word, metavar=metavar, help=text)


def locust_words(arguments: argparse.Namespace, options: LocustOptions) -> list[str]:
    """Write those that were given as a command line of Locust's."""
    given = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in options}
    return [word if value is True else f"{word}={value}" for word, value in given.items() if value]


@dataclass(frozen=True)
class ReplaySettings:
    """Which trace is replayed, and how."""

    trace: str
    pace: Pace = "closed"
    """How its events, and with ``open`` its requests, follow each other."""
    speed: float | None = None
    """1 is as recorded; None: nothing was said."""
    rate: str | None = None
    """Arrivals, such as ``50/s``; None: as recorded."""
    loops: int | None = None
    """How often each user does all of it; None: once, or until the time is over."""
    requests: tuple[str, ...] | None = None
    """``LABEL`` or ``LABEL=WEIGHT`` each, empty for all; None: the whole trace."""
    check_order: bool = False
    """Whether the order of events is held against the trace's afterwards."""
    event_log: Path | None = None
    """Where the times of all events are kept; None: in the run folder, if needed."""

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> "ReplaySettings | None":
        """Pick them out of a parsed command line; None without a trace."""
        trace = getattr(parsed, "trace", None)  # replayer run has none
        if trace is None:
            return None
        return cls(
            trace=trace,
            pace=cast("Pace", parsed.pace),
            speed=parsed.speed,
            rate=parsed.rate,
            loops=parsed.loops,
            requests=None if parsed.requests is None else tuple(parsed.requests),
            check_order=parsed.check_order,
            event_log=Path(parsed.event_log) if parsed.event_log else None,
        )


def add_replay_options(parser: Parser) -> None:
    """Declare the options of a replay, except the trace."""
    parser.add_argument(
        "--pace",
        choices=("asap", "closed", "timed", "open"),
        default="closed",
        help="how events follow each other: closed (with the recorded pauses; the default), timed "
        "(at the recorded times), asap (at once), open (requests arrive at a rate, closed "
        "inside)",
    )
    parser.add_argument(
        "--speed",
        type=_read_speed,
        metavar="X",
        help="1 is the recorded speed (default), 2 twice as fast",
    )
    parser.add_argument(
        "--rate",
        type=_read_rate,
        metavar="RATE",
        help="arrival rate of requests, such as 50/s, with --pace open (default: as recorded)",
    )
    parser.add_argument(
        "--loops",
        type=_read_loops,
        metavar="N",
        help="times that each user replays it (default: once; with -t: until the time is over)",
    )
    parser.add_argument(
        "--requests",
        nargs="*",
        action="extend",
        metavar="LABEL",
        help="replay requests as transactions instead of the whole trace: the LABELs named, or "
        "LABEL=WEIGHT to change their shares (default: all, as often as recorded)",
    )
    parser.add_argument(
        "--check-order",
        action="store_true",
        help="log the time of each event, then check that each event waited for its predecessors",
    )
    parser.add_argument(
        "--event-log",
        metavar="DIR",
        help="keep that log in a new folder (default with --check-order: events in the run folder)",
    )


def _read_speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        message = f"must be a number above 0, such as 0.5 or 2, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return speed


def _read_rate(text: str) -> str:
    # Only when a rate is given: the models are slow to import, and help is asked for often.
    from pydantic_core import PydanticCustomError  # noqa: PLC0415

    from replayer.scenario.units import read_rate  # noqa: PLC0415

    try:
        read_rate(text)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(error.message()) from None
    return text


def _read_loops(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_LOOPS:
        message = f"must be a whole number from 1 to {MAX_LOOPS}, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


CacheState = Literal["as-is", "cold", "warm"]
DEFAULT_BUDGET_S = 300  # chosen: who waits for an answer goes for a coffee
_PRECISIONS = (0.01, 1.0)
_TOLERANCES = (0.0, 10.0)


def read_percentage(text: str, bounds: tuple[float, float], example: str) -> float:
    """Return the share that a percentage stands for, within bounds.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    least, most = bounds
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not least <= share <= most:
        raise argparse.ArgumentTypeError(
            f"must be a percentage from {least:.0%} to {most:.0%}, such as {example}, got {text!r}"
        )
    return share


def read_run_time(text: str) -> int:
    """Read a time of Locust's options into seconds.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        return parse_run_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _check_neighbour(text: str) -> str:
    read_neighbour(text)
    return text  # a master sends to its workers what was parsed, and Locust sends plain values


Keep = Literal["laid-out", "used"]
Results = Literal["screen", "details", "json", "none"]

VERIFY = "verify=true"
DEFAULT_STOP_TIMEOUT_S = 10  # chosen: long for a transaction, short for a person who waits


@dataclass(frozen=True)
class Beside:
    """What the results of a run are shown beside."""

    baseline: KeptRun | None = None
    credits: tuple[Path, ...] = ()
    """Exports of a cloud's metrics; read again when the run has ended."""


@dataclass(frozen=True)
class Settings:
    """What a run was asked to do, by the command line or by the page's form."""

    users: int | None = None
    """How many; None is left to the scenario."""
    spawn_rate: float | None = None
    """How many users arrive a second; None is left to the scenario."""
    run_time_s: int | None = None
    """Measured time per target; None is left to the scenario."""
    scenario: str | None = None
    """A scenario's file or name; None when a trace is replayed, or when all users come from a
    locustfile."""
    replay: ReplaySettings | None = None
    """The trace to replay and how; None when there is none."""
    targets: tuple[str, ...] = ()
    """``[NAME=]PATH[,PATH…]`` each; empty means a fresh folder under ./replayer-data."""
    cache: CacheState | None = None
    """State of the caches before each segment; None means what the scenario says."""
    remount_command: str | None = None
    neighbour: NeighbourOrder | None = None
    """What runs beside each target's second setting; None: every target is measured alone."""
    rounds: int | None = None
    """Turns of each target; None means one for one target, of several until they decide."""
    precision: float | None = None
    """By what share a ratio may be off that decides; None means the default."""
    budget_s: int | None = None
    """Time for that, of all targets together; None means the default."""
    ends_early: bool = True
    """Whether it may end once it has decided."""
    duet: bool = False
    """Whether both targets are measured at the same time."""
    seed: int | None = None
    changes: tuple[str, ...] = ()
    """``KEY=VALUE`` each, laid over the scenario."""
    keep: Keep | None = None
    """Leave the folders: laid out for another run, or as the users left them."""
    reuse: tuple[str, ...] = ()
    """``[NAME=]FOLDER[,FOLDER…]`` each, kept by an earlier run, instead of targets."""
    output: Path | None = None
    """The run folder; None means a new one under ``runs``."""
    runs: Path | None = None
    """Where new run folders are made; None means ./replayer-runs."""
    thresholds: tuple[str, ...] = ()
    beside: Beside = field(default_factory=Beside)
    results: Results = "screen"
    files: ReportFiles = field(default_factory=ReportFiles)
    quiet: bool = False
    asks: bool = False
    """Whether a person is there who can be asked."""
    command: tuple[str, ...] = ()

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> "Settings":
        """Pick the settings out of a parsed command line."""
        return cls(
            users=parsed.num_users,
            spawn_rate=parsed.spawn_rate,
            run_time_s=parsed.run_time,
            scenario=parsed.scenario,
            replay=ReplaySettings.read(parsed),
            targets=tuple(parsed.target),
            cache=cast("CacheState | None", parsed.cache),
            remount_command=parsed.remount_command,
            neighbour=None if parsed.neighbour is None else read_neighbour(parsed.neighbour),
            rounds=parsed.rounds,
            precision=parsed.precision,
            budget_s=parsed.budget,
            duet=parsed.duet,
            seed=parsed.seed,
            changes=tuple(parsed.changes),
            keep=cast("Keep | None", parsed.keep),
            reuse=tuple(parsed.reuse),
            output=Path(parsed.output) if parsed.output else None,
            thresholds=tuple(parsed.threshold),
            beside=_read_beside(parsed),
            results=cast("Results", parsed.results),
            files=read_report_files(parsed),
            quiet=parsed.quiet,
            asks=may_ask(parsed),
            command=tuple(parsed.command_line),
        )


def _read_beside(parsed: argparse.Namespace) -> Beside:
    files = tuple(Path(path).absolute() for path in parsed.credits)
    check_credits(files)
    return Beside(_read_baseline(parsed), files)


def _read_baseline(parsed: argparse.Namespace) -> KeptRun | None:
    if parsed.baseline is None:
        if parsed.tolerance is not None:
            message = "--tolerance needs --baseline NAME: there is no run to be held against"
            raise ReplayerError(message, hint="keep one first: replayer runs keep NAME latest")
        return None
    tolerance = TOLERANCE if parsed.tolerance is None else parsed.tolerance
    return KeptRun(parsed.baseline, find_run(parsed.baseline).absolute(), tolerance)


def add_options(parser: Parser) -> None:
    """Declare what every run has, except what it runs (a word of its own on our command line)."""
    add_target_options(parser)
    add_procedure_options(parser)
    add_result_options(parser)


def add_scenario_options(parser: Parser) -> None:
    """Declare what goes with a scenario only."""
    parser.add_argument(
        "--verify",
        dest="changes",
        action="append_const",
        const=VERIFY,
        default=[],
        help="stamp all data, and check what reads return: torn, swapped, lost or stale data fails "
        "the run",
    )
    add_set_option(parser)


def add_set_option(parser: Parser) -> None:
    """Declare what changes a scenario."""
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the scenario, such as users.think_time=1s; repeatable",
    )


def add_mount_option(parser: Parser) -> None:
    """Declare a target of commands that make their own folders there, and keep none."""
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="a folder on a mount to measure; repeatable",
    )


def add_target_options(parser: Parser) -> None:
    """Declare where it runs, and what becomes of the folders."""
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[NAME=]PATH[,PATH…]",
        help="where to run: a folder on a mount; commas separate mount points of the same export; "
        "repeatable (default: a new folder under ./replayer-data)",
    )
    parser.add_argument(
        "--reuse",
        action="append",
        default=[],
        metavar="[NAME=]DIR[,DIR…]",
        help="run in a folder that an earlier run kept with --keep, after a check; repeatable",
    )
    keeping = parser.add_mutually_exclusive_group()
    keeping.add_argument(
        "--keep",
        action="store_const",
        const="laid-out",
        help="lay the folders out again and keep them, for --reuse",
    )
    keeping.add_argument(
        "--keep-used",
        dest="keep",
        action="store_const",
        const="used",
        help="keep the folders as the users left them, to look at",
    )


def add_procedure_options(parser: Parser) -> None:
    """Declare how segments follow each other."""
    parser.add_argument(
        "--cache",
        choices=("as-is", "cold", "warm"),
        help="state of the client's caches before each segment (default: the scenario's, or as-is)",
    )
    parser.add_argument(
        "--remount-command",
        metavar="COMMAND",
        help="shell command that remounts $REPLAYER_PATH, for --cache cold; sudo in it may ask for "
        "a password",
    )
    parser.add_argument(
        "--neighbour",
        type=_check_neighbour,
        metavar="SCENARIO[@RATE]",
        help="measure each target twice, in turns: alone, and while this scenario runs on it, too "
        "(at RATE arrivals, such as uploads@20/s; default: at its own pace)",
    )
    parser.add_argument(
        "--rounds",
        type=read_rounds,
        metavar="N",
        help="turns of each target, interleaved (default: 1 for one target; of several, until "
        "they are decided, or 3 with -t; 6 with -t and --duet)",
    )
    parser.add_argument(
        "--precision",
        type=partial(read_percentage, bounds=_PRECISIONS, example="10%"),
        metavar="PERCENT",
        help="end when each ratio of p50 and p95 leaves out 1 or is known so well (default: "
        f"{PRECISION:.0%}%); for several targets without -t and --rounds",
    )
    parser.add_argument(
        "--budget",
        type=read_run_time,
        metavar="TIME",
        help="time for all rounds together until then, at most, but for the first 3 (default: "
        f"{DEFAULT_BUDGET_S // 60}m)",
    )
    parser.add_argument(
        "--duet",
        action="store_true",
        help="measure two targets at the same time, each with all users, for machines that others "
        "disturb; refused where both share a server, a disk or a busy client",
    )
    parser.add_argument("--seed", type=read_seed, metavar="N", help="seed of every random draw")


def add_result_options(parser: Parser) -> None:
    """Declare what is judged, and where results go."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="folder of the run's records (default: new, in ./replayer-runs)",
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="LIMIT",
        help="a limit to judge, such as 'front_page.p95 < 200ms'; repeatable",
    )
    parser.add_argument(
        "--credits",
        action="append",
        default=[],
        metavar="FILE",
        help=CREDITS_HELP,
    )
    parser.add_argument(
        "--baseline",
        metavar="RUN",
        help="fail if this run is slower than a kept one (replayer runs keep); it then has "
        "3 rounds at least, unless --rounds is given",
    )
    parser.add_argument(
        "--tolerance",
        type=partial(read_percentage, bounds=_TOLERANCES, example="15%"),
        metavar="PERCENT",
        help=f"how much slower it may be, such as 15%% (default: {TOLERANCE:.0%}%)",
    )
    parser.add_argument(
        "--report-html",
        metavar="FILE",
        help="write the report as one HTML page with charts to a new file",
    )
    add_junit_option(parser)
    parser.add_argument(
        "--quiet", action="store_true", help="show no progress, only calls that hang"
    )
    add_yes_option(parser)


def add_yes_option(parser: Parser) -> None:
    """Declare that a person at the terminal is asked nothing."""
    parser.add_argument(
        "-y", "--yes", action="store_true", help="ask nothing, such as whether the machine is busy"
    )


def may_ask(parsed: argparse.Namespace) -> bool:
    """Whether a person is there who can be asked."""
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return at_terminal and not (parsed.quiet or parsed.yes)


def add_printed_options(parser: Parser) -> None:
    """Declare what is printed at the end: the first screen, unless something else is asked for."""
    for word, text in (
        ("details", "print all figures and findings, not only the first screen"),
        ("json", "print the results as one JSON document"),
    ):
        parser.add_argument(
            f"--{word}",
            dest="results",
            action="store_const",
            const=word,
            default="screen",
            help=text,
        )


def add_junit_option(parser: Parser) -> None:
    """Declare the report for pipelines."""
    parser.add_argument(
        "--junit", metavar="FILE", help="write the verdict as JUnit XML to a new file"
    )


def read_report_files(parsed: argparse.Namespace) -> ReportFiles:
    """Pick the files of the report out of a parsed command line."""
    html, junit = parsed.report_html, parsed.junit
    return ReportFiles(Path(html) if html else None, Path(junit) if junit else None)


def read_rounds(text: str) -> int:
    """Read a number of rounds.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    return _read_number(text, 1, 1000)


def read_seed(text: str) -> int:
    """Read a seed: 64 bits, as a scenario's.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    return _read_number(text, 0, 2**64 - 1)


def _read_number(text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        message = f"must be a whole number from {low} to {high}, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


_TIME = re.compile(r"(?P<all>\d+)|((?P<h>\d+)h)?((?P<m>\d+)m)?((?P<s>\d+)s)?")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def parse_run_time(text: str) -> int:
    """Parse a time as Locust has it, such as 90, 90s, 5m or 1h20m, into seconds.

    Raises:
        ValueError: It is none; says what it must be.
    """
    found = _TIME.fullmatch(text)
    if found is None or not text:
        unknown = [unit for unit in re.findall(r"\d\s*([^\W\d]+)", text) if unit not in _SECONDS]
        message = f"must be whole seconds, such as 90, 90s, 5m or 1h20m, got {text!r}"
        if unknown:
            known = ", ".join(_SECONDS)
            message = f"{text!r} has the unknown unit {unknown[0]!r}, known units: {known}"
        raise ValueError(message)
    return int(found["all"] or 0) + sum(int(found[unit] or 0) * _SECONDS[unit] for unit in _SECONDS)
