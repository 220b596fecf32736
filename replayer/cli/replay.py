"""``replayer replay``: a trace's file calls again, on one or more targets, driven by Locust."""

import argparse

from replayer.cli._run_arguments import add_run_arguments
from replayer.locust.launch import hand_over
from replayer.run.options import add_replay_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a trace folder, or the name of a shipped trace such as wordpress/front-warm",
    )
    add_replay_options(parser.add_argument_group("replay"))
    add_run_arguments(parser)
    parser.set_defaults(scenario=None, changes=[])


run = hand_over
