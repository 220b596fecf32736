"""``replayer run``: one scenario on one or more targets, driven by Locust's own ``main``."""

import argparse

from replayer.cli._locust import add_locust_arguments, hand_over
from replayer.load.fleet_options import add_fleet_options, add_locusts_fleet_options
from replayer.load.metrics_options import add_metrics_option
from replayer.load.options import add_options, add_scenario_options
from replayer.load.web_options import add_web_options

NAME = "run"
HELP = "Run a scenario on one or more targets and show what its users would feel."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario's file or name")
    add_locust_arguments(parser)
    parser.add_argument(
        "--web", action="store_true", help="serve a web page that starts and shows runs"
    )
    add_options(parser)
    add_locusts_fleet_options(parser)
    add_fleet_options(parser)
    add_metrics_option(parser)
    add_scenario_options(parser)
    add_web_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Hand over to Locust and return its exit code."""
    return hand_over(arguments)
