"""``replayer locustfile``: where the locustfile is that ``locust -f`` takes."""

import argparse

from replayer.locust import LOCUSTFILE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: the command has no arguments."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    del arguments
    print(LOCUSTFILE)
    return 0
