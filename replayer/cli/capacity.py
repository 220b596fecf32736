"""``replayer capacity``: the largest load at which all limits hold, on each target."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from replayer.capacity.document import document_of
from replayer.capacity.flow import find_capacities
from replayer.capacity.goals import goals_of
from replayer.capacity.order import CapacityOrder, Load
from replayer.capacity.page import render_page
from replayer.capacity.table import render_capacities
from replayer.errors import EXIT_INCONCLUSIVE, ReplayerError, in_one_line
from replayer.report.cost import load_prices
from replayer.report.forms import write_new
from replayer.report.style import Style
from replayer.run.neighbour import check_neighbour, read_neighbour
from replayer.run.options import (
    add_locust_options,
    add_mount_option,
    add_set_option,
    locust_words,
    read_percentage,
    read_run_time,
)
from replayer.run.own_command import FIRST_THREADS
from replayer.run.roles import LOCUSTS, LOCUSTS_PORT, OF_WORKERS
from replayer.run.targets import NamedTarget, parse_targets
from replayer.run.watchdog import check_targets
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import Scenario
from replayer.verdict.threshold import parse_threshold

PARENT = Path("replayer-capacities")
PRECISIONS = (0.01, 0.5)
FLEET = {name: told for name, told in LOCUSTS.items() if name not in OF_WORKERS}
MASTERS = tuple(name for name in FLEET if name not in {"processes", "master"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "scenario", metavar="SCENARIO", help="a scenario, or a trace with --requests"
    )
    add_mount_option(parser)
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="LIMIT",
        help="a limit on a percentile or a share of errors, such as 'front_page.p95 < 200ms' or "
        "'front_page.errors < 0.1%%'; repeatable",
    )
    add_set_option(parser)
    parser.add_argument(
        "--requests",
        nargs="*",
        metavar="LABEL",
        help="replay the requests of a trace, which then stands for SCENARIO: the LABELs named, or "
        "LABEL=WEIGHT to change their shares (default: all, as often as recorded)",
    )
    parser.add_argument(
        "--neighbour",
        type=read_neighbour,
        metavar="SCENARIO[@RATE]",
        help="look for each target's capacity twice: alone, and while this scenario runs on it "
        "(at RATE arrivals, such as uploads@20/s; default: at its own pace)",
    )
    _add_search_arguments(parser)
    _add_result_arguments(parser)
    add_locust_options(parser.add_argument_group("several processes or machines"), FLEET)


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=[load.value for load in Load],
        default=Load.ARRIVALS.value,
        help="what is searched for: arrivals a second, whatever became of those before (default), "
        "or users that wait and think as the scenario says",
    )
    parser.add_argument(
        "--precision",
        type=partial(read_percentage, bounds=PRECISIONS, example="5%"),
        default=0.05,
        metavar="PERCENT",
        help="end when each capacity is known so well (default: 5%%)",
    )
    parser.add_argument(
        "--budget",
        type=read_run_time,
        default=15 * 60,
        metavar="TIME",
        help="time for all trials together, at most (default: 15m)",
    )
    parser.add_argument(
        "-u",
        "--users",
        type=int,
        choices=range(1, 10_001),
        default=FIRST_THREADS,
        metavar="N",
        help="threads that serve the arrivals, at first (default: %(default)s)",
    )


def _add_result_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write one HTML page with curves to a new file"
    )
    parser.add_argument(
        "--prices",
        type=Path,
        metavar="FILE",
        help="your prices, in YAML as for 'replayer cost': a month at the capacity, and a million "
        "page views",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help=f"folder of the trials (default: new, in ./{PARENT})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the trials, and show what was found."""
    order = _order(arguments)
    if arguments.master and not order.quiet:
        _say_where_it_waits(arguments)
    found = find_capacities(order)
    if arguments.json:
        print(json.dumps(document_of(order, found), indent=2))
    else:
        print(render_capacities(order, found, Style.of(sys.stdout)), end="")
    if arguments.html is not None:
        write_new(arguments.html, render_page(order, found))
    print(f"trials: {order.output}", file=sys.stderr)
    return 0 if all(one.is_known(order.precision) for one in found) else EXIT_INCONCLUSIVE


def _say_where_it_waits(arguments: argparse.Namespace) -> None:
    port = arguments.master_bind_port or LOCUSTS_PORT
    kind = "run" if arguments.requests is None else "replay"
    worker = in_one_line(f"replayer {kind} {arguments.scenario} --worker --master-host …")
    sys.stderr.write(f"replayer: waits for workers at port {port} ({worker})\n")


def _order(arguments: argparse.Namespace) -> CapacityOrder:
    """Check what is asked for, before any trial.

    Raises:
        ReplayerError: It cannot be meant.
    """
    for option in ("target", "threshold"):
        if not getattr(arguments, option):
            raise ReplayerError(f"no --{option} is given", hint="see replayer capacity --help")
    thresholds = [parse_threshold(text, "--threshold") for text in arguments.threshold]
    goals = goals_of(thresholds)
    if arguments.requests is None:
        _refuse_roles(load_scenario(arguments.scenario, arguments.changes))
    _refuse_idle_options(arguments)
    targets = _targets(arguments)
    output = arguments.output or PARENT / time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    for option, path in (("-o", output), ("--html", arguments.html)):
        if path is not None and path.exists():
            raise ReplayerError(f"{option} {path}: exists", hint="name a new one")
    return CapacityOrder(
        scenario=arguments.scenario,
        requests=arguments.requests,
        targets=targets,
        goals=goals,
        load=Load(arguments.by),
        precision=arguments.precision,
        budget_s=arguments.budget,
        users=arguments.users,
        words=_more_words(arguments),
        prices=None if arguments.prices is None else load_prices(arguments.prices),
        neighbour=None if arguments.neighbour is None else check_neighbour(arguments.neighbour),
        output=output.absolute(),
        quiet=arguments.quiet or arguments.json,
    )


def _targets(arguments: argparse.Namespace) -> Sequence[NamedTarget]:
    """Return the targets; a master has their names alone.

    Raises:
        ReplayerError: They cannot be meant, or used.
    """
    if not arguments.master:
        targets = parse_targets(arguments.target)
        check_targets(targets)
        return targets
    for word in arguments.target:
        if set("=/,") & set(word) or word.startswith("."):
            message = f"--target {word}: a master uses no target, its workers have the paths"
            raise ReplayerError(message, hint="give the name alone, such as --target share")
    return [replace(target, paths=()) for target in parse_targets(arguments.target)]


def _refuse_idle_options(arguments: argparse.Namespace) -> None:
    """Refuse options that do nothing, or cannot be, in this role.

    Raises:
        ReplayerError: Names the first.
    """
    if not arguments.master:
        for name in MASTERS:
            if getattr(arguments, name):
                message = f"--{name.replace('_', '-')} has no effect without --master"
                raise ReplayerError(message, hint="add --master, or leave it out")
    elif arguments.processes:
        message = "--processes and --master exclude each other"
        raise ReplayerError(message, hint="give --processes to the workers")
    elif arguments.neighbour is not None:
        message = "--neighbour needs the targets on this machine"
        raise ReplayerError(message, hint="leave out --master, or --neighbour")


def _more_words(arguments: argparse.Namespace) -> list[str]:
    """Return the words that all trials have.

    Raises:
        ReplayerError: A trace cannot be changed.
    """
    if arguments.requests is not None and arguments.changes:
        message = f"--set {arguments.changes[0]} has no effect: --requests replays a trace"
        raise ReplayerError(message, hint="leave it out")
    words = [word for change in arguments.changes for word in ("--set", change)]
    kept = ["--keep-workers"] if arguments.master else []
    return [*words, *locust_words(arguments, FLEET), *kept]


def _refuse_roles(scenario: Scenario) -> None:
    if scenario.roles:
        message = f"{scenario.name}: its users have roles, and wait for each other"
        raise ReplayerError(message, hint="a load needs transactions that begin on their own")
