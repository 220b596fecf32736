"""The arguments that ``run``, ``replay`` and ``web`` have in common, a group for each concern."""

import argparse

from replayer.run.options import (
    DEFAULT_STOP_TIMEOUT_S,
    Parser,
    add_locust_options,
    add_printed_options,
    add_procedure_options,
    add_result_options,
    add_target_options,
)
from replayer.run.roles import LOCUSTS, add_fleet_options
from replayer.run.web_options import add_metrics_option


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what runs and replays have in common, a group for each concern."""
    _add_load_arguments(parser.add_argument_group("load"))
    add_target_options(parser.add_argument_group("targets"))
    add_procedure_options(parser.add_argument_group("caches and rounds"))
    results = parser.add_argument_group("results")
    add_result_options(results)
    _add_result_arguments(results)
    _add_locusts_arguments(parser.add_argument_group("Locust"))
    several = parser.add_argument_group("several processes or machines")
    add_locust_options(several, LOCUSTS)
    add_fleet_options(several)


def _add_load_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-u",
        "--users",
        metavar="N",
        help="number of users (default: the scenario's, or 1); with a load shape, the maximum",
    )
    parser.add_argument(
        "-r",
        "--spawn-rate",
        metavar="RATE",
        help="users started per second (default: the scenario's ramp-up, or all at once)",
    )
    parser.add_argument(
        "-t",
        "--run-time",
        metavar="TIME",
        help="measured time per target, such as 60s or 5m (default: the scenario's; replays: once)",
    )
    parser.add_argument(
        "-s",
        "--stop-timeout",
        metavar="TIME",
        default=str(DEFAULT_STOP_TIMEOUT_S),
        help="time for transactions to finish when a run ends (default: %(default)s s)",
    )


def _add_result_arguments(parser: Parser) -> None:
    printed = parser.add_mutually_exclusive_group()
    add_printed_options(printed)
    parser.add_argument(
        "--html",
        dest="report_html",
        metavar="FILE",
        help="write the report as one HTML page with charts to a new file; same as --report-html",
    )
    add_metrics_option(parser)


def _add_locusts_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-f",
        "--locustfile",
        metavar="FILE",
        help="a locustfile whose users or load shape take part",
    )
    parser.add_argument(
        "--csv",
        metavar="DIR|PREFIX",
        help="write Locust's own CSV files, such as DIR/locust_stats.csv or PREFIX_stats.csv; DIR "
        "is a folder or ends with a slash",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        dest="loglevel",
        action="store_const",
        const="INFO",
        help="show Locust's own log on standard error; same as --loglevel INFO",
    )
    parser.add_argument("--loglevel", metavar="LEVEL", help="show Locust's own log, such as INFO")
