"""What ``replayer run`` and ``replayer replay`` have in common: both hand over to Locust's main."""

import argparse
import logging
import sys

from replayer.load import LOCUSTFILE
from replayer.load.fleet_options import fleet_words
from replayer.load.options import DEFAULT_STOP_TIMEOUT_S, Settings, words_of
from replayer.load.web_options import refuse_page_words, web_words

__all__ = ["add_locust_arguments", "hand_over"]


def add_locust_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are Locust's own, and how results are printed."""
    parser.add_argument("-u", "--users", metavar="N", help="how many users")
    parser.add_argument("-r", "--spawn-rate", metavar="RATE", help="users that arrive a second")
    parser.add_argument(
        "-t", "--run-time", metavar="TIME", help="measured time per target, such as 60s or 5m"
    )
    parser.add_argument(
        "-s",
        "--stop-timeout",
        metavar="TIME",
        default=str(DEFAULT_STOP_TIMEOUT_S),
        help="time that transactions have to finish in at an end (default: %(default)s s)",
    )
    parser.add_argument(
        "-f",
        "--locustfile",
        metavar="FILE",
        help="a locustfile with users or a load shape that takes part",
    )
    parser.add_argument("--csv", metavar="PREFIX", help="Locust's own CSV files")
    parser.add_argument(
        "--html",
        dest="report_html",
        metavar="FILE",
        help="the same as --report-html; after 'locust -f', --html is Locust's own report",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the results as one JSON document"
    )
    parser.add_argument("--loglevel", metavar="LEVEL", help="show Locust's own log, such as INFO")


def hand_over(arguments: argparse.Namespace) -> int:
    """Run what the parsed arguments ask for under Locust, and return its exit code."""
    if hasattr(arguments, "web"):
        refuse_page_words(arguments)
    arguments.results = "json" if arguments.json else "tables"
    settings = Settings.read(arguments)
    sys.argv = [f"replayer {arguments.command}", *_locust_words(arguments), *words_of(settings)]
    if arguments.loglevel is None:
        logging.basicConfig(level=logging.ERROR, format="%(message)s")
        logging.getLogger("locust.stats_logger").disabled = True
    from locust.main import main  # noqa: PLC0415 - patches the standard library

    try:
        main()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    return 0


def _locust_words(arguments: argparse.Namespace) -> list[str]:
    files = ",".join(filter(None, (str(LOCUSTFILE), arguments.locustfile)))
    values = {
        "--locustfile": files,
        "--users": arguments.users,
        "--spawn-rate": arguments.spawn_rate,
        "--run-time": arguments.run_time,
        "--stop-timeout": arguments.stop_timeout,
        "--csv": arguments.csv,
        "--loglevel": arguments.loglevel,
        "--metrics": getattr(arguments, "metrics", None),
    }
    given = [f"{name}={value}" for name, value in values.items() if value is not None]
    quiet = [] if arguments.loglevel else ["--skip-log-setup"]
    mode = web_words(arguments) if getattr(arguments, "web", False) else ["--headless"]
    several = fleet_words(arguments) if hasattr(arguments, "processes") else []
    return [*mode, "--only-summary", *quiet, *given, *several]
