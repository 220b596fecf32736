"""The options of a run, declared once for ``replayer run`` and for Locust's own command line.

Locust's options (users, spawn rate, run time, stop timeout, CSV, HTML) keep their names;
those here are added to its parser. What was chosen goes on as frozen ``Settings``.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from replayer.errors import ReplayerError
from replayer.report import ReportFiles
from replayer.run.parser import Parser
from replayer.run.replay_options import ReplaySettings, replay_words_of

__all__ = [
    "VERIFY",
    "CacheState",
    "Settings",
    "add_junit_option",
    "add_options",
    "add_procedure_options",
    "add_result_options",
    "add_scenario_options",
    "add_target_options",
    "options_of",
    "read_report_files",
    "read_rounds",
    "read_seed",
    "words_of",
]

CacheState = Literal["as-is", "cold", "warm"]
Keep = Literal["laid-out", "used"]
Results = Literal["tables", "json", "none"]

VERIFY = "verify=true"
DEFAULT_STOP_TIMEOUT_S = 10  # chosen: long for a transaction, short for a person who waits


@dataclass(frozen=True)
class Settings:
    """What a run was asked to do, apart from Locust's own options.

    Attributes:
        scenario: A scenario's file or name; None when a trace is replayed, or when all users come
            from a locustfile.
        replay: The trace to replay and how; None when there is none.
        targets: ``[NAME=]PATH[,PATH…]`` each; empty means a fresh folder under ./replayer-data.
        cache: State of the caches before each segment; None means what the scenario says.
        remount_command: Shell command that remounts a target, or None.
        rounds: Turns of each target; None means one for one target, three for several.
        seed: Overrides the scenario's.
        changes: ``KEY=VALUE`` each, laid over the scenario.
        keep: Leave the folders: laid out for another run, or as the users left them.
        reuse: ``[NAME=]FOLDER[,FOLDER…]`` each, kept by an earlier run, instead of targets.
        output: The run folder; None means a new one under ``runs``.
        runs: Where new run folders are made; None means ./replayer-runs.
        thresholds: Limits beside the scenario's own.
        results: What is printed on stdout at the end.
        files: Where the report goes beside that.
        quiet: Whether progress is left out.
    """

    scenario: str | None = None
    replay: ReplaySettings | None = None
    targets: tuple[str, ...] = ()
    cache: CacheState | None = None
    remount_command: str | None = None
    rounds: int | None = None
    seed: int | None = None
    changes: tuple[str, ...] = ()
    keep: Keep | None = None
    reuse: tuple[str, ...] = ()
    output: Path | None = None
    runs: Path | None = None
    thresholds: tuple[str, ...] = ()
    results: Results = "tables"
    files: ReportFiles = field(default_factory=ReportFiles)
    quiet: bool = False

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> "Settings":
        """Pick the settings out of a parsed command line."""
        return cls(
            scenario=parsed.scenario,
            replay=ReplaySettings.read(parsed),
            targets=tuple(parsed.target),
            cache=cast("CacheState | None", parsed.cache),
            remount_command=parsed.remount_command,
            rounds=parsed.rounds,
            seed=parsed.seed,
            changes=tuple(parsed.changes),
            keep=cast("Keep | None", parsed.keep),
            reuse=tuple(parsed.reuse),
            output=Path(parsed.output) if parsed.output else None,
            thresholds=tuple(parsed.threshold),
            results=cast("Results", parsed.results),
            files=read_report_files(parsed),
            quiet=parsed.quiet,
        )


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
        help="have data say which run, user, write, file and place they are of, and check what "
        "reads return: torn, swapped, lost and stale data fail the run",
    )
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the scenario, such as users.think_time=1s; repeatable",
    )


class ParsedCommand(Protocol):
    """What holds a parsed command line: Locust's environment."""

    parsed_options: Any


def options_of(environment: ParsedCommand) -> argparse.Namespace:
    """Return the command line that Locust has parsed."""
    if environment.parsed_options is None:
        message = "this environment of Locust has no command line: start it with its own main()"
        raise ReplayerError(message)
    parsed: argparse.Namespace = environment.parsed_options
    return parsed


def words_of(settings: Settings) -> list[str]:
    """Write settings as a command line that ``add_options`` reads back."""
    texts = {
        "--scenario": settings.scenario,
        "--cache": settings.cache,
        "--remount-command": settings.remount_command,
        "--rounds": settings.rounds,
        "--seed": settings.seed,
        "--output": settings.output,
        "--results": settings.results,
        "--report-html": settings.files.html,
        "--junit": settings.files.junit,
    }
    lists = {
        "--target": settings.targets,
        "--reuse": settings.reuse,
        "--set": settings.changes,
        "--threshold": settings.thresholds,
    }
    switches = {
        "--keep": settings.keep == "laid-out",
        "--keep-used": settings.keep == "used",
        "--quiet": settings.quiet,
    }
    return [
        *(() if settings.replay is None else replay_words_of(settings.replay)),
        *(f"{name}={text}" for name, text in texts.items() if text is not None),
        *(f"{name}={text}" for name, texts in lists.items() for text in texts),
        *(name for name, chosen in switches.items() if chosen),
    ]


def add_target_options(parser: Parser) -> None:
    """Declare where it runs, and what becomes of the folders."""
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[NAME=]PATH[,PATH…]",
        help="where to run: a folder on a mount, several mount points of one export separated "
        "by commas; repeatable (default: a fresh folder under ./replayer-data)",
    )
    parser.add_argument(
        "--reuse",
        action="append",
        default=[],
        metavar="[NAME=]DIR[,DIR…]",
        help="run in a folder that an earlier run kept (--keep), after checking it; repeatable",
    )
    keeping = parser.add_mutually_exclusive_group()
    keeping.add_argument(
        "--keep",
        action="store_const",
        const="laid-out",
        help="leave the folders there, laid out anew, for --reuse",
    )
    keeping.add_argument(
        "--keep-used",
        dest="keep",
        action="store_const",
        const="used",
        help="leave the folders there as the users left them, to be looked at",
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
        "--rounds",
        type=read_rounds,
        metavar="N",
        help="turns of each target, interleaved (default: 1 for one target, 3 for several)",
    )
    parser.add_argument("--seed", type=read_seed, metavar="N", help="seed of every random draw")


def add_result_options(parser: Parser) -> None:
    """Declare what is judged, and where results go."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="folder of the run's records (default: a new one under ./replayer-runs)",
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="LIMIT",
        help="a limit to judge, such as 'front_page.p95 < 200ms'; repeatable",
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
