"""Where a run is tied to Locust: its options, and what happens at each of its events.

Locustfiles register the listeners; everything else begins with Locust's ``init`` event, never at
import, as Locust forks its processes after importing the locustfile.
"""

import argparse
import math
import sys
from typing import Any, NoReturn

from locust import events, runners
from locust.env import Environment

from replayer.errors import EXIT_BUG, ReplayerError, in_lines, keep_bug
from replayer.load.options import (
    DEFAULT_STOP_TIMEOUT_S,
    Settings,
    add_options,
    add_scenario_options,
    options_of,
)
from replayer.load.replay_options import add_replay_options
from replayer.load.stage import Stage, open_stage

__all__ = ["register"]

_stages: dict[Environment, Stage] = {}


def register() -> None:
    """Listen to Locust's events; a second time changes nothing."""
    if _add_arguments in events.init_command_line_parser._handlers:  # noqa: SLF001 - it has no public view
        return
    events.init_command_line_parser.add_listener(_add_arguments)
    events.init.add_listener(_begin)
    events.test_start.add_listener(_start)
    events.spawning_complete.add_listener(_everyone_is_there)
    events.test_stopping.add_listener(_finish_segment)
    events.quitting.add_listener(_end)


def _add_arguments(parser: Any, **_: object) -> None:  # noqa: ANN401 - configargparse is untyped
    parser.add_argument("--scenario", metavar="SCENARIO", help="a scenario's file or name")
    parser.add_argument("--trace", metavar="TRACE", help="a trace to replay, instead of a scenario")
    parser.add_argument(
        "--results",
        choices=("tables", "json", "none"),
        default="tables",
        help="what is printed on stdout at the end",
    )
    add_options(parser)
    add_scenario_options(parser)
    add_replay_options(parser)
    parser.set_defaults(stop_timeout=str(DEFAULT_STOP_TIMEOUT_S))
    _refuse_modes_of(parser)


def _refuse_modes_of(parser: Any) -> None:  # noqa: ANN401 - configargparse is untyped
    """Refuse what is not possible once parsed: a worker waits for its master before init."""
    parse = parser.parse_args

    def parse_args(*words: Any, **settings: Any) -> argparse.Namespace:  # noqa: ANN401 - as theirs
        options: argparse.Namespace = parse(*words, **settings)
        try:
            _refuse_modes(options)
        except ReplayerError as error:
            _leave(in_lines(error), error.exit_code)
        return options

    parser.parse_args = parse_args


def _begin(environment: Environment, **_: object) -> None:
    # Native threads use more than one CPU, which Locust takes for a hub that is too busy.
    runners.CPU_WARNING_THRESHOLD = math.inf  # type: ignore[assignment]
    try:
        _stages[environment] = open_stage(environment, Settings.read(options_of(environment)))
    except ReplayerError as error:
        _leave(in_lines(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - Locust would log a traceback and go on
        _leave(keep_bug(error), EXIT_BUG)


def _refuse_modes(options: argparse.Namespace) -> None:
    for chosen, name in (
        (options.master, "--master"),
        (options.worker, "--worker"),
        (options.processes, "--processes"),
    ):
        if chosen:
            message = f"{name}: runs on several processes are not possible yet"
            raise ReplayerError(message, hint="run without it: users are native threads")
    if not options.headless:
        message = "the web page is not possible yet"
        raise ReplayerError(message, hint="add --headless, or use 'replayer run'")


def _start(environment: Environment, **_: object) -> None:
    if environment in _stages:
        _stages[environment].start()


def _everyone_is_there(user_count: int, **_: object) -> None:
    del user_count
    for stage in _stages.values():
        stage.conductor.everyone_is_there()


def _finish_segment(environment: Environment, **_: object) -> None:
    if environment in _stages:
        _stages[environment].conductor.finish()


def _end(environment: Environment, **_: object) -> None:
    stage = _stages.pop(environment, None)
    if stage is None:
        return
    try:
        environment.process_exit_code = stage.close()
    except Exception as error:  # noqa: BLE001 - Locust would log a traceback and exit with 0
        print(keep_bug(error), file=sys.stderr)
        environment.process_exit_code = EXIT_BUG


def _leave(text: str, code: int) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(code)
