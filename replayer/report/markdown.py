"""The report as Markdown, for an issue, a wiki or a pull request."""

from collections.abc import Iterator, Sequence

from replayer.errors import in_one_line
from replayer.report.description import (
    client_rows,
    client_titles,
    describe_run,
    describe_verdict,
    footnotes,
    ranking_notes,
    say_alarms,
    say_figures,
    say_verdict,
)
from replayer.report.document import Document
from replayer.report.figures import COLUMNS, ERROR_TITLES, error_rows, figure_rows, ranking_rows
from replayer.report.findings import acknowledgements, nothing_found, sentences
from replayer.report.replay import (
    DIVERGENCE_TITLES,
    describe_agreement,
    divergence_rows,
    explain_divergence,
    first_divergences,
)

_ESCAPED = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_[]<>|#~&"}
    # GitHub looks for names and formulas in what is left without backslashes; see its 'Writing
    # mathematical expressions' on the dollar.
    | {"@": "@<!-- -->", "$": "<span>$</span>"}
)


def render_markdown(document: Document) -> str:
    """Render a run as Markdown, ending with a newline."""
    lines = [
        f"# {escape(describe_verdict(document))}",
        *(line for text in _headlines(document) for line in ("", escape(text))),
        *_verdict(document),
        *_described(document),
        *_replay(document),
        *_figures(document),
        *_clients(document),
        *_errors(document),
        *_ranking(document),
        *_findings(document),
        "",
        *(f"- {escape(note)}" for note in _notes(document)),
    ]
    return "\n".join(lines) + "\n"


def _headlines(document: Document) -> Iterator[str]:
    yield f"{say_verdict(document)}."
    yield from say_figures(document)
    if document.verdict.outcome != "pass":  # else the verdict says it already
        yield from say_alarms(document)


def _notes(document: Document) -> Iterator[str]:
    yield from footnotes(document)
    yield from ranking_notes(document)
    yield from document.analysis.notes


def _verdict(document: Document) -> Iterator[str]:
    rows = [
        (found.outcome, found.threshold, found.target, found.says, found.source)
        for found in document.verdict.judgements
    ]
    if rows:
        titles = ("outcome", "threshold", "target", "measured", "stated in")
        yield from table_lines(titles, "lllrl", rows)
    warnings = ("; hint: ".join(filter(None, (w.message, w.hint))) for w in document.warnings)
    notes = [*document.verdict.reasons, *warnings]
    if document.failure is not None:
        notes.insert(0, document.failure)
    if notes:
        yield ""
        yield from (f"- {escape(note)}" for note in notes)


def _described(document: Document) -> Iterator[str]:
    yield ""
    yield "## What was measured"
    rows = [(label.strip(), text) for label, text in describe_run(document)]
    yield from table_lines(("", ""), "ll", rows)


def _replay(document: Document) -> Iterator[str]:
    pairs = list(describe_agreement(document))
    if pairs:
        yield from ("", "## Replay")
        yield from table_lines(("", ""), "ll", pairs)
    rows = list(divergence_rows(document))
    if rows:
        yield from ("", "## Divergences")
        yield from table_lines(DIVERGENCE_TITLES, "llllr", rows)
    for target, found in first_divergences(document):
        yield from ("", f"## First divergence on {escape(target)}")
        yield from table_lines(("", ""), "ll", list(explain_divergence(target, found)))


def _figures(document: Document) -> Iterator[str]:
    titles = [column.title for column in COLUMNS]
    for target in document.summary.targets:
        yield ""
        yield f"## {escape(target.name)}"
        rows = [
            (f"{'· ' * row.depth}{row.name}", *row.cells)
            for row in figure_rows(target.overall, document.load)
        ]
        sides = "l" + "r" * (len(titles) - 1)
        yield from table_lines(titles, sides, rows) if rows else ["", "Nothing was measured."]


def _clients(document: Document) -> Iterator[str]:
    rows = list(client_rows(document))
    if rows:
        yield from ("", "## Share of each client")
        titles = client_titles(document)
        yield from table_lines(titles, f"ll{'r' * (len(titles) - 3)}l", rows)


def _errors(document: Document) -> Iterator[str]:
    rows = [row for target in document.summary.targets for row in error_rows(target)]
    if rows:
        yield from ("", "## Errors")
        yield from table_lines(ERROR_TITLES, "lllrrr", rows)


def _ranking(document: Document) -> Iterator[str]:
    if document.ranking:
        yield from ("", "## Ranking")
        titles = ("figure", "target", "value", "ratio", "rounds", "")
        yield from table_lines(titles, "llrrrl", list(ranking_rows(document.ranking)))


def _findings(document: Document) -> Iterator[str]:
    found = list(sentences(document.analysis))
    yield from ("", "## What stands out", "")
    yield from (f"- **{escape(item.label)}**: {escape(item.text)}" for item in found)
    if not found:
        yield escape(nothing_found(document.analysis))
    promises = list(acknowledgements(document.analysis))
    if promises:
        yield from ("", "## Where written data is when a transaction ends", "")
        yield from (f"- {escape(label)}: {escape(text)}" for label, text in promises)


def table_lines(titles: Sequence[str], sides: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table; ``sides`` has an l or an r for each column."""
    yield ""
    yield _row([escape(title) for title in titles])
    yield _row(["---:" if side == "r" else "---" for side in sides])
    yield from (_row([escape(cell) for cell in row]) for row in rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return in_one_line(text).translate(_ESCAPED)
