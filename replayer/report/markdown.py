"""The report as Markdown, for an issue, a wiki or a pull request."""

from collections.abc import Iterator, Sequence

from replayer.measure import format_rate, format_time_ns
from replayer.report.description import describe_run, describe_verdict, footnotes
from replayer.report.document import Document, Place, Ranked
from replayer.report.figures import COLUMNS, DASH, figure_rows
from replayer.report.style import clean

__all__ = ["render_markdown"]

_ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#"})


def render_markdown(document: Document) -> str:
    """Render a run as Markdown, ending with a newline."""
    lines = [
        f"# {_text(describe_verdict(document))}",
        *_verdict(document),
        *_described(document),
        *_figures(document),
        *_ranking(document),
        "",
        *(f"- {_text(note)}" for note in footnotes(document)),
    ]
    return "\n".join(lines) + "\n"


def _verdict(document: Document) -> Iterator[str]:
    rows = [
        (found.outcome, found.threshold, found.target, found.says, found.source)
        for found in document.verdict.judgements
    ]
    if rows:
        yield from _table(("outcome", "threshold", "target", "measured", "stated in"), rows)
    notes = [*document.verdict.reasons, *(item.message for item in document.warnings)]
    if document.failure is not None:
        notes.insert(0, document.failure)
    if notes:
        yield ""
        yield from (f"- {_text(note)}" for note in notes)


def _described(document: Document) -> Iterator[str]:
    yield ""
    yield "## What was measured"
    rows = [(label.strip(), text) for label, text in describe_run(document)]
    yield from _table(("", ""), rows)


def _figures(document: Document) -> Iterator[str]:
    titles = [column.title for column in COLUMNS]
    for target in document.summary.targets:
        yield ""
        yield f"## {_text(target.name)}"
        rows = [
            (f"{'· ' * row.depth}{row.name}", *row.cells)
            for row in figure_rows(target.overall, document.load)
        ]
        yield from _table(titles, rows) if rows else ["", "Nothing was measured."]


def _ranking(document: Document) -> Iterator[str]:
    if not document.ranking:
        return
    yield ""
    yield "## Ranking"
    rows = [
        (
            f"{ranked.subject} {ranked.figure}",
            place.target,
            _value(ranked, place.value),
            f"{place.ratio:.2f}",
            _spread(ranked, place),
            "best" if number == 0 else "differs" if place.differs else "no difference shown",
        )
        for ranked in document.ranking
        for number, place in enumerate(ranked.places)
    ]
    yield from _table(("figure", "target", "value", "ratio", "rounds", ""), rows)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield _row(titles)
    yield _row(["---", *("---:" for _ in titles[1:])])
    yield from (_row([_text(cell) for cell in row]) for row in rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    return clean(text).translate(_ESCAPED)


def _value(ranked: Ranked, value: float) -> str:
    return format_time_ns(value) if ranked.unit == "ns" else format_rate(value)


def _spread(ranked: Ranked, place: Place) -> str:
    if place.low is None or place.high is None:
        return DASH
    return f"{_value(ranked, place.low)} {DASH} {_value(ranked, place.high)}"
