"""``replayer report RUN…``: print the report of runs again, from their folders alone."""

import argparse
from collections.abc import Callable
from pathlib import Path

from replayer.measure import RunRecord, load_run
from replayer.report import (
    Destination,
    Document,
    Style,
    compose,
    render_csv,
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_table,
)

__all__ = ["HELP", "NAME", "add_arguments", "run"]

NAME = "report"
HELP = "print the report of finished, interrupted or killed runs"

_FORMS: dict[str, Callable[[Document], str]] = {
    "json": render_json,
    "markdown": render_markdown,
    "csv": render_csv,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run folder")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=("table", *_FORMS, "junit"),
        help="what to print (default: table); several runs follow each other, as JSON one a line, "
        "as JUnit in one file with a test suite each",
    )
    form.add_argument(
        "--json", dest="format", action="store_const", const="json", help="short for --format json"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to a new file instead of printing; without a format its name says which "
        "(.json, .md, .csv, .xml, .html), or else it is a table",
    )
    form.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write one HTML page with charts to a new file; several targets or runs are ranked",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the reports; the exit code is about reading them, not about their verdicts."""
    forms = ("junit", *_FORMS)
    to = Destination.of(arguments.html, arguments.output, arguments.format, forms)
    records = [load_run(path) for path in arguments.runs]
    if to.form == "html":
        to.put(render_html(records))
    else:
        to.put(_text(records, to.form, to.style))
    return 0


def _text(records: list[RunRecord], form: str, style: Style) -> str:
    documents = [compose(record) for record in records]
    if form == "table":
        return "\n".join(render_table(document, style) for document in documents)
    if form == "json" and len(documents) > 1:
        return "".join(document.model_dump_json() + "\n" for document in documents)
    if form == "junit":
        return render_junit(*documents)
    texts = [_FORMS[form](document) for document in documents]
    if form == "csv":  # one header for all
        return texts[0] + "".join(text.split("\n", 1)[1] for text in texts[1:])
    return "\n".join(texts)
