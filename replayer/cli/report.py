"""``replayer report RUN…``: print the report of runs again, from their folders alone."""

import argparse
from pathlib import Path

from replayer.cli._form_arguments import add_form_arguments
from replayer.measure.credits import CREDITS_HELP, with_credits
from replayer.measure.history import RUN_HELP, find_run
from replayer.measure.record import load_run
from replayer.report.composition import compose
from replayer.report.forms import FORMS, Destination, suffixes
from replayer.report.html import render_html


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--credits", action="append", default=[], type=Path, metavar="FILE", help=CREDITS_HELP
    )
    add_form_arguments(
        parser,
        FORMS,
        suffixes(FORMS),
        details="all figures and findings",
        more=". With several runs, JSON has one line per run, JUnit one test suite per run",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the reports; the exit code is about reading them, not about their verdicts."""
    to = Destination.of(arguments.html, arguments.output, arguments.format, suffixes(FORMS))
    records = [with_credits(load_run(find_run(word)), arguments.credits) for word in arguments.runs]
    if to.form == "html":
        to.put(render_html(records))
    else:
        to.put(FORMS[to.form].render([compose(record) for record in records], to.style))
    return 0
