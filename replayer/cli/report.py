"""``replayer report RUN…``: print the report of runs again, from their folders alone."""

import argparse
from pathlib import Path

from replayer.measure.record import load_run
from replayer.report.composition import compose
from replayer.report.forms import FORMS, Destination, suffixes
from replayer.report.html import render_html

NAME = "report"
HELP = "print the report of finished, interrupted or killed runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run folder")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        metavar="FORM",
        choices=tuple(FORMS),
        help=f"what to print: {', '.join(FORMS)} (default: screen, what decides); with several "
        "runs, JSON has one run a line and JUnit one test suite a run",
    )
    form.add_argument(
        "--details",
        dest="format",
        action="store_const",
        const="table",
        help="print all that was measured and found; same as --format table",
    )
    form.add_argument(
        "--json", dest="format", action="store_const", const="json", help="same as --format json"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to a new file instead of printing; its suffix selects the format "
        f"({', '.join(suffixes(FORMS))}; otherwise a table)",
    )
    form.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write one HTML page with charts to a new file; several targets or runs are ranked",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the reports; the exit code is about reading them, not about their verdicts."""
    to = Destination.of(arguments.html, arguments.output, arguments.format, suffixes(FORMS))
    records = [load_run(path) for path in arguments.runs]
    if to.form == "html":
        to.put(render_html(records))
    else:
        to.put(FORMS[to.form].render([compose(record) for record in records], to.style))
    return 0
