"""``replayer web``: the web page, with every scenario to choose from."""

import argparse

from replayer.cli._run_arguments import add_run_arguments
from replayer.locust.launch import hand_over
from replayer.run.options import add_locust_options, add_scenario_options
from replayer.run.web_options import LOCUSTS, add_page_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "scenario",
        nargs="?",
        metavar="SCENARIO",
        help="scenario that the form shows first: its file or name",
    )
    add_scenario_options(parser.add_argument_group("scenario"))
    add_run_arguments(parser)
    page = parser.add_argument_group("web page")
    add_locust_options(page, LOCUSTS)
    add_page_options(page)
    parser.set_defaults(web=True)


run = hand_over
