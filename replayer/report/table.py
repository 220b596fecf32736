"""The report as text: verdict first, then what was measured, the figures, the ranking."""

import textwrap
from collections.abc import Iterator

from replayer.errors import in_one_line
from replayer.report.description import (
    describe_incident,
    describe_judgement,
    describe_run,
    describe_verdict,
    footnotes,
    ranking_notes,
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
from replayer.report.server import describe_server, lay_out_server
from replayer.report.style import PLAIN, Column, Style, fold, lay_out_grid, text_width

_REPLAY_INDENT = 11
_LABEL_LIMIT = 24  # columns: a longer label stands on its own line

_INCIDENTS = {
    "error": "First errors",
    "stall": "Calls that hung",
    "abandoned": "Calls that never came back",
    "slow": "Slowest calls",
}
_MOST_LINES = 5  # of each kind of incident: chosen; the JSON form has more


def render_table(document: Document, style: Style = PLAIN) -> str:
    """Render a run as text, ending with a newline."""
    verdict = document.verdict
    lines = [
        *_verdict(document, style),
        *_described(document, style),
        *_replay(document, style),
        *_figures(document, style),
        *_errors(document, style),
        *_ranking(document, style),
        *_findings(document, style),
        *_server(document, style),
        *_incidents(document, style),
        "",
        *wrapped("run folder", document.folder, 12, style),
        # Once more: a long report has scrolled its first line away.
        *wrapped("verdict", f"{verdict.outcome}, exit code {verdict.exit_code}", 12, style),
    ]
    return style.fit("\n".join(lines)) + "\n"


def _verdict(document: Document, style: Style) -> Iterator[str]:
    verdict = document.verdict
    yield style.paint(in_one_line(describe_verdict(document)), verdict.outcome)
    targets = len(document.targets)
    for judgement in verdict.judgements:
        first, *others = wrapped("", describe_judgement(judgement, targets), 16, style)
        mark = style.paint(f"{judgement.outcome:12}", judgement.outcome)
        yield f"  {mark}  {first.lstrip()}"
        yield from others
    for reason in verdict.reasons:
        yield from wrapped("  because", reason, 12, style)
    if document.failure is not None:
        yield from wrapped("  failure", document.failure, 12, style)
    for warning in document.warnings:
        yield from wrapped("  warning", warning.message, 12, style)
        if warning.hint:
            yield from wrapped("  hint", warning.hint, 12, style)


def _server(document: Document, style: Style) -> Iterator[str]:
    for found in document.server:
        yield from heading(f"What {found.target} asked its server", style)
        yield from wrapped("", describe_server(found), 2, style)
        yield from lay_out_server(found, style)


def _described(document: Document, style: Style) -> Iterator[str]:
    yield from heading("What was measured", style)
    pairs = list(describe_run(document))
    indent = min(max(len(label) for label, _ in pairs), _LABEL_LIMIT) + 2
    for label, text in pairs:
        yield from wrapped(label, text, indent, style)


def _replay(document: Document, style: Style) -> Iterator[str]:
    pairs = list(describe_agreement(document))
    if not pairs:
        return
    yield from heading("Replay: how far it agreed with the trace", style)
    for label, text in pairs:
        yield from wrapped(label, text, _REPLAY_INDENT, style)
    rows = list(divergence_rows(document))
    if rows:
        yield from heading("Divergences", style)
        columns = [Column(title, 9) for title in ("", *DIVERGENCE_TITLES[1:])]
        yield from lay_out_grid(columns, rows, style).lines
    for target, found in first_divergences(document):
        yield from heading(f"First divergence on {target}", style)
        for label, text in explain_divergence(target, found):
            yield from wrapped(label, text, _REPLAY_INDENT, style)


def _figures(document: Document, style: Style) -> Iterator[str]:
    left_out: tuple[str, ...] = ()
    for target in document.summary.targets:
        rows = [
            (f"{'  ' * row.depth}{row.name}", *row.cells)
            for row in figure_rows(target.overall, document.load)
        ]
        if not rows:
            yield from heading(f"{target.name}: nothing was measured", style)
            continue
        columns = (Column(in_one_line(target.name), 9), *COLUMNS[1:])
        grid = lay_out_grid(columns, rows, style)
        left_out = grid.left_out or left_out
        yield ""
        yield from grid.lines
    yield ""
    for remark in footnotes(document):
        yield from note(remark, style)
    if left_out:
        titles = ", ".join(left_out)
        how = "use a wider terminal (in a pipe: COLUMNS) or --json"
        yield from note(f"no room for {titles}: {how}", style)


def _errors(document: Document, style: Style) -> Iterator[str]:
    rows = [row for target in document.summary.targets for row in error_rows(target)]
    if rows:
        yield from heading("Errors", style)
        columns = [Column(title, 9) for title in ("", *ERROR_TITLES[1:])]
        yield from lay_out_grid(columns, rows, style).lines


def _ranking(document: Document, style: Style) -> Iterator[str]:
    if not (document.ranking or document.unranked):
        return
    yield from heading("Ranking: ratio to the best, lowest and highest round", style)
    rows = list(ranking_rows(document.ranking))
    # Only the best of each figure names it.
    shown = [(row[0] if row[5] == "best" else "", *row[1:]) for row in rows]
    titles = ("", "target", "value", "ratio", "rounds", "")
    columns = [Column(title, need) for title, need in zip(titles, (9, 8, 7, 6, 1, 5), strict=True)]
    if shown:
        yield from lay_out_grid(columns, shown, style).lines
    for remark in ranking_notes(document):
        yield from note(remark, style)


def _findings(document: Document, style: Style) -> Iterator[str]:
    found = list(sentences(document.analysis))
    yield from heading("What stands out", style)
    for sentence in found[:_MOST_FINDINGS]:
        yield from wrapped(sentence.label, sentence.text, 13, style)
    if len(found) > _MOST_FINDINGS:
        yield from note(f"{len(found) - _MOST_FINDINGS} more in --json", style)
    if not found:
        yield from note(nothing_found(document.analysis), style)
    for remark in document.analysis.notes:
        yield from note(remark, style)
    promises = list(acknowledgements(document.analysis))
    if promises:
        yield from heading("Where written data is when a transaction ends", style)
        indent = min(max(len(label) for label, _ in promises), _LABEL_LIMIT) + 2
        for label, text in promises:
            yield from wrapped(label, text, indent, style)


_MOST_FINDINGS = 10  # chosen: what fits on a screen; alarms come first


def _incidents(document: Document, style: Style) -> Iterator[str]:
    for kind, title in _INCIDENTS.items():
        found = [incident for incident in document.incidents if incident.kind == kind]
        if not found:
            continue
        yield from heading(title, style)
        for incident in found[:_MOST_LINES]:
            yield from fold([in_one_line(describe_incident(incident))], style)
        if len(found) > _MOST_LINES:
            yield from note("more in events.jsonl and in --json", style)


def heading(text: str, style: Style) -> Iterator[str]:
    """Yield an empty line and a heading."""
    yield ""
    yield style.paint(in_one_line(text), "heading")


def note(text: str, style: Style) -> Iterator[str]:
    """Yield a remark, wrapped."""
    for line in textwrap.wrap(in_one_line(text), max(style.width, 80), break_long_words=False):
        yield style.paint(line, "faint")


def wrapped(label: str, text: str, indent: int, style: Style) -> Iterator[str]:
    """Yield a label and its text, which goes on below itself; two blanks at least part them."""
    label = in_one_line(label)
    yield from textwrap.wrap(
        in_one_line(text) or "\N{EN DASH}",
        max(style.width, 80),
        initial_indent=label + " " * max(indent - text_width(label), 2 if label else 0),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
