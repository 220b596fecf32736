"""``replayer run``: one scenario on one or more targets, driven by Locust's own ``main``."""

import argparse

from replayer.cli._run_arguments import add_run_arguments
from replayer.locust.launch import hand_over
from replayer.run.options import add_locust_options, add_scenario_options
from replayer.run.web_options import LOCUSTS, add_page_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario's file or name")
    add_scenario_options(parser.add_argument_group("scenario"))
    add_run_arguments(parser)
    page = parser.add_argument_group("web page")
    page.add_argument(
        "--web", action="store_true", help="serve a web page that starts and shows runs"
    )
    add_locust_options(page, LOCUSTS)
    add_page_options(page)


run = hand_over
