"""Where a run is tied to Locust: its options, and what happens at each of its events.

Locustfiles register the listeners; everything else begins with Locust's ``init`` event, never at
import, as Locust forks its processes after importing the locustfile.
"""

import argparse
import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import gevent
from locust import events, runners
from locust.argument_parser import timespan
from locust.env import Environment
from locust.runners import DistributedRunner, MasterRunner, WorkerRunner

from replayer.cluster.cluster_run import open_cluster_run
from replayer.cluster.forks import forks_follow, forks_follow_no_more
from replayer.cluster.worker_process import WorkerProcess, open_worker_process
from replayer.errors import EXIT_BUG, ReplayerError, guard_streams, in_lines, keep_bug
from replayer.locust.launch import command_line, parsed_already
from replayer.locust.master import read_carefully
from replayer.locust.patches import (
    correct_figures,
    find_refusal,
    leave_keys_alone,
    stop_at_once,
    watch_csv_files,
)
from replayer.locust.ports import LocustMaster, LocustWorker
from replayer.locust.spawner import LocustSpawner, hand_load_over, options_of
from replayer.preflight import check_process
from replayer.run.caches import refuse_idle_remount
from replayer.run.controller import ControlledRun
from replayer.run.exit_watchdog import watch_exit
from replayer.run.interruption import Interruption
from replayer.run.local_run import make_request, open_local_run
from replayer.run.metrics import Meter, serve_metrics
from replayer.run.options import (
    DEFAULT_STOP_TIMEOUT_S,
    Settings,
    add_options,
    add_replay_options,
    add_scenario_options,
    read_run_time,
)
from replayer.run.progress import Observer, at_the_terminal
from replayer.run.roles import (
    ClusterSettings,
    add_fleet_options,
    arrange_modes,
    refuse_idle_options,
)
from replayer.run.web_options import (
    LOOPBACK,
    add_metrics_option,
    add_page_options,
    check_web_options,
    read_address,
)

if TYPE_CHECKING:  # Locust's web server is not for headless runs
    from locust.web import WebUI

    from replayer.web.run_control import RunControl

_runs: dict[Environment, ControlledRun] = {}
_workers: dict[Environment, WorkerProcess] = {}
_controls: "dict[Environment, RunControl]" = {}


def register() -> None:
    """Listen to Locust's events; a second time changes nothing."""
    if _add_arguments in events.init_command_line_parser._handlers:  # noqa: SLF001 - it has no public view
        return
    watch_csv_files()  # Locust makes them before its init event
    read_carefully()  # as above
    events.init_command_line_parser.add_listener(_add_arguments)
    events.init.add_listener(_begin)
    events.test_start.add_listener(_start)
    events.spawning_complete.add_listener(_everyone_is_there)
    events.test_stopping.add_listener(_finish_segment)
    events.test_stop.add_listener(_finish_run)
    events.quitting.add_listener(_end)


def _add_arguments(parser: Any, **_: object) -> None:  # noqa: ANN401 - configargparse is untyped
    locusts = {action.dest for action in parser._actions}  # noqa: SLF001 - it has no public view
    parser.add_argument("--scenario", metavar="SCENARIO", help="a scenario's file or name")
    parser.add_argument("--trace", metavar="TRACE", help="a trace to replay, instead of a scenario")
    parser.add_argument(
        "--results",
        choices=("screen", "details", "json", "none"),
        default="screen",
        help="output on stdout at the end",
    )
    add_options(parser)
    add_scenario_options(parser)
    add_replay_options(parser)
    add_page_options(parser)
    add_fleet_options(parser)
    add_metrics_option(parser)
    parser.set_defaults(stop_timeout=str(DEFAULT_STOP_TIMEOUT_S), web_host=LOOPBACK)
    ours = {action.dest for action in parser._actions} - locusts  # noqa: SLF001 - as above
    parsed = {name: value for name, value in parsed_already().items() if name in ours}
    parser.set_defaults(command_line=command_line(), **parsed)
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
    parser.error = partial(_refuse_words, parser.prog)
    for action in parser._actions:  # noqa: SLF001 - its own refusal names no value
        if action.type is timespan:
            action.type = read_run_time


def _refuse_words(program: str, message: str) -> NoReturn:
    """Refuse a value of one of Locust's own options in the manner of all others."""
    command = "locust" if program == "__main__.py" else program
    error = ReplayerError(message, hint=f"see {command} --help")
    _leave(in_lines(error), ReplayerError.exit_code)


def _begin(environment: Environment, web_ui: "WebUI | None" = None, **_: object) -> None:
    # Native threads use more than one CPU, which Locust takes for a hub that is too busy.
    runners.CPU_WARNING_THRESHOLD = math.inf  # type: ignore[assignment]
    correct_figures()
    leave_keys_alone()
    stop_at_once()
    guard_streams()
    forks_follow_no_more()
    if isinstance(environment.runner, DistributedRunner):
        watch_exit(float(environment.stop_timeout or 0))
    try:
        check_process(sys.argv)
        _open(environment, web_ui, Settings.read(options_of(environment)))
    except ReplayerError as error:
        _leave(in_lines(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - Locust would log a traceback and go on
        _leave(keep_bug(error), EXIT_BUG)


def _open(environment: Environment, web_ui: "WebUI | None", settings: Settings) -> None:
    """Make the run that was asked for, or the page that asks for runs."""
    if web_ui is not None:
        from replayer.locust.page import open_page  # noqa: PLC0415 - see above

        control = _controls[environment] = open_page(environment, web_ui, settings)
        if (address := read_address(options_of(environment))) is not None:
            serve_metrics(control.meter, address)
        return
    runner, terms = environment.runner, ClusterSettings.read(options_of(environment))
    if isinstance(runner, WorkerRunner):
        port = LocustWorker(environment, runner)
        _workers[environment] = open_worker_process(port, settings, terms)
        return
    observer = _listened_to(at_the_terminal(quiet=settings.quiet), environment)
    if isinstance(runner, MasterRunner):
        master = LocustMaster(environment, runner)
        run: ControlledRun = open_cluster_run(master, settings, terms, observer)
    else:
        request = make_request(LocustSpawner(environment), settings, observer, Interruption())
        refuse_idle_remount(request.workload.cache, settings.remount_command)
        request.interruption.watch()
        run = open_local_run(request, observer)
    hand_load_over(environment, run.request)
    _runs[environment] = run


def _listened_to(observer: Observer, environment: Environment) -> Observer:
    """Have the figures served, if they shall be."""
    address = read_address(options_of(environment))
    if address is None:
        return observer
    meter = Meter()
    serve_metrics(meter, address)
    return meter.follow(observer)


def _run_of(environment: Environment) -> ControlledRun | None:
    control = _controls.get(environment)
    return _runs.get(environment) if control is None else control.run


def _refuse_modes(options: argparse.Namespace) -> None:
    refuse_idle_options(options)
    arrange_modes(options)
    if not options.headless and not options.worker:
        check_web_options(options)
    if options.processes:  # Locust forks them next
        forks_follow()


def _start(environment: Environment, **_: object) -> None:
    run = _run_of(environment)
    if run is not None:
        run.start()


def _everyone_is_there(user_count: int, **_: object) -> None:
    del user_count
    for environment in (*_runs, *_controls):
        run = _run_of(environment)
        if run is not None:
            run.request.spawner.note_all()


def _finish_segment(environment: Environment, **_: object) -> None:
    run = _run_of(environment)
    if run is not None:
        run.controller.finish()


def _finish_run(environment: Environment, **_: object) -> None:
    """Close a run that the page started; one of the command line is closed with its process.

    Whoever stops the test of a command line, as a locustfile may, ends its process: nothing would
    ever end it afterwards.
    """
    run, runner = _runs.get(environment), environment.runner
    if environment in _controls:
        _controls[environment].finish()
    elif run is not None and runner is not None and not run.controller.is_asking:
        gevent.spawn(runner.quit)


def _end(environment: Environment, **_: object) -> None:
    run, control = _runs.pop(environment, None), _controls.pop(environment, None)
    worker = _workers.pop(environment, None)
    try:
        if run is not None:
            environment.process_exit_code = run.close()
        elif control is not None:
            environment.process_exit_code = control.leave()
        elif worker is not None:
            environment.process_exit_code = worker.close()
    except ReplayerError as error:
        print(in_lines(error), file=sys.stderr)
        environment.process_exit_code = error.exit_code
    except Exception as error:  # noqa: BLE001 - Locust would log a traceback and exit with 0
        print(keep_bug(error), file=sys.stderr)
        environment.process_exit_code = EXIT_BUG
    refusal = find_refusal(environment)
    if refusal is not None:
        print(in_lines(refusal), file=sys.stderr)
        if environment.process_exit_code != EXIT_BUG:
            environment.process_exit_code = refusal.exit_code


def _leave(text: str, code: int) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(code)
