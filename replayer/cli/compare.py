"""``replayer compare RUN RUN…``: targets of runs beside each other, with how sure each ratio is."""

import argparse

from replayer.cli._form_arguments import add_form_arguments
from replayer.measure.history import RUN_HELP, find_run, previous_of
from replayer.measure.record import load_run
from replayer.report.comparing import compare
from replayer.report.forms import COMPARISON_FORMS, Destination, suffixes
from replayer.report.html import render_html

EXPLANATION = """\
Each figure ranks the targets of all runs by their ratio to the best.
The 95 % interval of a ratio comes from resampling rounds and seconds.
One run with several targets is best: its targets took turns. The runs
may differ in length. A difference in users, seed, files or steps is
refused.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXPLANATION
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--different-plans",
        action="store_const",
        const="different plans",
        default="same plan",
        help="compare runs of different work, by the names that they share",
    )
    add_form_arguments(
        parser,
        COMPARISON_FORMS,
        suffixes(COMPARISON_FORMS),
        details="all figures, and what differs between the targets",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, and print; the exit code is about reading the runs, not about who is faster."""
    forms = suffixes(COMPARISON_FORMS)
    to = Destination.of(arguments.html, arguments.output, arguments.format, forms)
    records = [load_run(find_run(word)) for word in arguments.runs]
    if len(records) == 1 and len(records[0].run.targets) == 1:  # with what it did the time before
        before = previous_of(records[0].folder.absolute(), records[0].run)
        records = records if before is None else [load_run(before), *records]
    comparison = compare(records, arguments.different_plans)
    if to.form == "html":
        to.put(render_html(records, arguments.different_plans))
    else:
        to.put(COMPARISON_FORMS[to.form].render(comparison, to.style))
    return 0
