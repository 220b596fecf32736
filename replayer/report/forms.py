"""The forms of a report and of a comparison, one line each, and where a report goes.

Commands and the page offer these forms. HTML is a form apart: it draws distributions, so it needs
the records themselves. Report files are new ones: no file is overwritten.
"""

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar

from replayer.errors import OutsideError, ReplayerError
from replayer.measure.summary import Performance, RoundSummary, Statistics, TransactionSummary
from replayer.report.comparison_text import render_comparison_markdown, render_comparison_table
from replayer.report.document import Comparison, Document
from replayer.report.figures import NO_TRANSACTION
from replayer.report.first_screen import render_comparison_screen, render_first_screen
from replayer.report.json_form import render_comparison_json, render_json
from replayer.report.junit import render_junit
from replayer.report.markdown import render_markdown
from replayer.report.style import Style
from replayer.report.table import render_table

CSV_COLUMNS = (
    "run", "target", "round", "transaction", "op", "count", "errors", "cancelled", "rate_per_s",
    "throughput_per_s", "bytes", "bytes_per_s", "mean_ns", "stdev_ns", "min_ns", "p50_ns", "p95_ns",
    "p99_ns", "p99_9_ns", "max_ns", "unfinished_ns",
)  # fmt: skip
_COUNTS, _TIMES = CSV_COLUMNS.index("count"), CSV_COLUMNS.index("mean_ns")
_Cell = str | int | float | None


def render_csv(*documents: Document) -> str:
    """Render runs as CSV with one header: one line per run, target, round, transaction and op.

    Times are in nanoseconds. The round is ``all`` for all of them together, and the transaction for
    ops over all of them; calls outside of any have ``no transaction``. A figure that the sample
    does not support is an empty cell. ``unfinished_ns`` is how long the oldest had lasted that
    never ended; a ``max_ns`` that equals it is a lower bound.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for document in documents:
        for target in document.summary.targets:
            for part in (target.overall, *target.rounds):
                number = "all" if part.number is None else str(part.number)
                writer.writerows((document.id, target.name, number, *row) for row in _rows(part))
    return text.getvalue()


def _rows(part: RoundSummary) -> Iterator[tuple[_Cell, ...]]:
    for transaction in part.transactions:
        whole = _counts(transaction, transaction.cancelled)
        yield (transaction.name, "transaction", *whole, *_times(transaction.latency))
        none = (None,) * len(whole)
        yield (transaction.name, "transaction.service", *none, *_times(transaction.service))
        yield (transaction.name, "transaction.lag", *none, *_times(transaction.lag))
        if transaction.event_lag is not None:
            yield (transaction.name, "event.lag", *none, *_times(transaction.event_lag))
        for op in transaction.ops:
            yield (transaction.name, op.op, *_counts(op, None), *_times(op.time))
    for op in part.outside:
        yield (NO_TRANSACTION, op.op, *_counts(op, None), *_times(op.time))
    for op in part.ops:
        yield ("all", op.op, *_counts(op, None), *_times(op.time))


def _counts(entry: TransactionSummary | Performance, cancelled: int | None) -> tuple[_Cell, ...]:
    known = {**dict(entry), "cancelled": cancelled}
    return tuple(known[column] for column in CSV_COLUMNS[_COUNTS:_TIMES])


def _times(times: Statistics) -> tuple[_Cell, ...]:
    return tuple(getattr(times, column) for column in CSV_COLUMNS[_TIMES:])


_Shown = TypeVar("_Shown")


@dataclass(frozen=True)
class Form(Generic[_Shown]):
    """One form: a file's suffix, what a browser is sent, and who makes the text."""

    suffix: str
    media_type: str
    render: Callable[[_Shown, Style], str]


def _each_styled(
    render: Callable[[Document, Style], str],
) -> Callable[[Sequence[Document], Style], str]:
    return lambda documents, style: "\n".join(render(each, style) for each in documents)


FORMS: dict[str, Form[Sequence[Document]]] = {
    "screen": Form("txt", "text/plain", _each_styled(render_first_screen)),
    "table": Form("txt", "text/plain", _each_styled(render_table)),
    "json": Form("json", "application/json", lambda documents, _: render_json(*documents)),
    "markdown": Form("md", "text/markdown", _each_styled(lambda found, _: render_markdown(found))),
    "csv": Form("csv", "text/csv", lambda documents, _: render_csv(*documents)),
    "junit": Form("xml", "application/xml", lambda documents, _: render_junit(*documents)),
}

COMPARISON_FORMS: dict[str, Form[Comparison]] = {
    "screen": Form("txt", "text/plain", render_comparison_screen),
    "table": Form("txt", "text/plain", render_comparison_table),
    "json": Form("json", "application/json", lambda found, _: render_comparison_json(found)),
    "markdown": Form("md", "text/markdown", lambda found, _: render_comparison_markdown(found)),
}


def suffixes(forms: Mapping[str, Form[_Shown]]) -> dict[str, str]:
    """Return the form's name by the suffix of a file."""
    return {".html": "html", **{f".{form.suffix}": name for name, form in forms.items()}}


_HINT = "name a file that does not exist yet"


@dataclass(frozen=True)
class ReportFiles:
    """Files for a run's report beside what is printed; None: not asked for."""

    html: Path | None = None
    junit: Path | None = None

    def check(self) -> None:
        """Refuse files that could not be made: before the run, not after an hour of it.

        Raises:
            ReplayerError: One exists, or its folder does not.
            OutsideError: It could not be made.
        """
        named = [path for path in (self.html, self.junit) if path is not None]
        if len({path.absolute() for path in named}) < len(named):
            raise ReplayerError(f"{named[0]}: two reports cannot go to one file", hint=_HINT)
        for path in named:
            write_new(path, "")  # only making it tells whether it can be made
            path.unlink()

    def write(self, html: Callable[[], str], junit: Callable[[], str]) -> tuple[ReplayerError, ...]:
        """Write what was asked for; return what refused, for one costs no other one."""
        return (*_refused(self.html, html), *_refused(self.junit, junit))


def _refused(path: Path | None, render: Callable[[], str]) -> Iterator[ReplayerError]:
    if path is not None:
        try:
            write_new(path, render())
        except ReplayerError as error:
            yield error


@dataclass(frozen=True)
class Destination:
    """Where one report goes (None: it is printed), and in which form."""

    file: Path | None
    form: str

    @classmethod
    def of(
        cls, html: Path | None, output: Path | None, form: str | None, suffixes: Mapping[str, str]
    ) -> Self:
        """Choose from what was asked for.

        ``html`` is a file for a page instead of anything else, ``output`` one for what would be
        printed. The suffix of that one says the form if nothing else does: a text has the details,
        where what is printed is the first screen.

        Raises:
            ReplayerError: Both files are named.
        """
        if html is not None and output is not None:
            message = f"-o {output} is without effect: --html {html} is written, and nothing else"
            raise ReplayerError(message, hint="ask for one of them at a time")
        if html is not None:
            return cls(html, "html")
        named = None if output is None else suffixes.get(output.suffix.lower())
        return cls(output, form or named or ("table" if output else "screen"))

    @property
    def style(self) -> Style:
        """How a table looks there."""
        return Style.of(sys.stdout) if self.file is None else Style()

    def put(self, text: str) -> None:
        """Print the report, or write it.

        Raises:
            ReplayerError: The file exists, or its folder does not.
            OutsideError: It cannot be made, or not be written.
        """
        if self.file is None:
            sys.stdout.write(text)
        else:
            write_new(self.file, text)


def write_new(path: Path, text: str) -> None:
    """Write a text to a file that must not exist yet; what cannot be written whole is removed.

    Raises:
        ReplayerError: It exists, or its folder does not.
        OutsideError: It cannot be made, or not be written.
    """
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise ReplayerError(f"{path}: {error.strerror}", hint=_HINT) from error
    except OSError as error:
        raise _unmakable(path, error) from error
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)  # or it would be in the way of the next one
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise OutsideError(message, hint="make room there, or name a file elsewhere") from error


def _unmakable(path: Path, error: OSError) -> ReplayerError:
    if not os.path.isdir(path.absolute().parent):  # noqa: PTH112 - Path.is_dir raises EACCES
        return ReplayerError(f"{path}: there is no folder {path.parent}", hint="make it first")
    message = f"{path}: cannot be made: {error.strerror or error}"
    return OutsideError(message, hint="name a file in a folder that you may write to")
