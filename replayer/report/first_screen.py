"""The first screen of a run or a comparison: what decides, in at most 40 lines of 80 columns.

The verdict with its reason, the answer, a table of all transactions and of the weightiest, what
stands out, and where the rest is. Everything else is in the details and the other forms.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from replayer.errors import in_one_line
from replayer.measure.health import RunWarning
from replayer.measure.run import part_in_words
from replayer.measure.summary import Statistics
from replayer.measure.units import DASH, format_count, format_share, format_times
from replayer.report.answer import DIFFERS, begin_line
from replayer.report.description import (
    describe_duet,
    describe_judgement,
    describe_metric,
    describe_neighbour,
    describe_verdict,
    describe_verification,
    say_lost,
    unfinished,
)
from replayer.report.document import ComparedFigure, Comparison, Document, PooledFigures
from replayer.report.figures import show_rate, show_time, show_value
from replayer.report.findings import sentences
from replayer.report.ranking import ALL, FIGURES
from replayer.report.replay import describe_agreement
from replayer.report.server import describe_server
from replayer.report.style import PLAIN, Column, Style, lay_out_grid
from replayer.report.table import wrapped

LINES = 40
"""Of a first screen, for up to four targets: what a terminal shows without scrolling."""
_SHARE = ": "  # between a transaction and its share of all
_WEIGHTIEST = 3  # chosen: transactions with figures of their own
_LABEL = 14  # columns
_LONGEST = 240  # characters of a finding: chosen, three lines; the details have all of it

_COLUMNS = (
    Column("", 9),
    Column("p50", 8),
    Column("p95", 7),
    Column("p99", 4),
    Column("per s", 3),
    Column("errors", 5),
    Column("p50 to best", 6),
)


_Ratios = Mapping[tuple[str, str], str]
"""By subject and target: how its median stands to the best."""


@dataclass(frozen=True)
class Note:
    """Something to be said, beside the figures."""

    label: str
    """What it is, such as ``because``."""
    text: str
    """A sentence."""

    def lines(self, style: Style) -> list[str]:
        """Return it behind its label, folded to the width."""
        return list(wrapped(f"  {self.label}", self.text, _LABEL, style))


def render_first_screen(document: Document, style: Style = PLAIN) -> str:
    """Render what decides, ending with a newline."""
    verdict = document.verdict
    code = f"  (exit code {verdict.exit_code})" if verdict.exit_code else ""
    head = [style.paint(in_one_line(describe_verdict(document)) + code, verdict.outcome)]
    table = _table(_blocks(document), _ratios_of(document.ranking), style)
    body = lay_below(([*answer_lines(document.answer, style)], [*table]))
    where = f"replayer report {document.folder} --details"
    return fill_screen(head, list(_reasons(document)), body, list(_remarks(document)), where, style)


def render_comparison_screen(comparison: Comparison, style: Style = PLAIN) -> str:
    """Render what decides between several runs, ending with a newline."""
    head = [*answer_lines(comparison.headline, style), ""]
    table = list(_table(_compared_blocks(comparison), _ratios_of(comparison.compared), style))
    cautions = [Note("caution", text) for text in comparison.cautions]
    return fill_screen(head, [], table, cautions, "replayer compare RUN RUN… --details", style)


def fill_screen(  # noqa: PLR0913, PLR0917 - the parts of a screen
    head: Sequence[str],
    reasons: Sequence[Note],
    body: Sequence[str],
    remarks: Sequence[Note],
    where: str,
    style: Style,
) -> str:
    """Return the parts of a screen below each other, with as many notes as there is room for."""
    end = ["", *wrapped("  details", where, _LABEL, style)]
    room = LINES - len(head) - len(body) - len(end)
    first, room = _fit(reasons, room, style)
    last, _ = _fit(remarks, room - 1, style)
    gap = [""] if last else []
    return style.fit("\n".join([*head, *first, *body, *gap, *last, *end])) + "\n"


def lay_below(parts: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of parts, with a gap above each that has some."""
    return [line for part in parts if part for line in ("", *part)]


def answer_lines(texts: Iterable[str], style: Style) -> Iterator[str]:
    """Yield the lines of sentences that answer."""
    for text in texts:
        yield from (
            style.paint(line, "heading") for line in wrapped("", begin_line(text), 0, style)
        )


def _fit(notes: Iterable[Note], room: int, style: Style) -> tuple[list[str], int]:
    """Return the lines of the first notes that there is room for, and the room that is left."""
    lines: list[str] = []
    left_out = 0
    for note in notes:
        own = note.lines(style)
        if left_out or len(lines) + len(own) > room - 1:  # one line says how many are left out
            left_out += 1
        else:
            lines += own
    if left_out:
        lines.append(style.paint(f"  {left_out} more with --details", "faint"))
    return lines, room - len(lines)


def _reasons(document: Document) -> Iterator[Note]:
    """Yield why the verdict is what it is, and limits that were not kept."""
    verdict, targets = document.verdict, len(document.targets)
    answered = "\n".join(document.answer)
    yield from (Note("because", each) for each in verdict.reasons if each not in answered)
    if document.failure is not None:
        yield Note("failure", document.failure)
    for outcome in ("fail", "inconclusive"):
        for each in verdict.judgements:
            if each.outcome == outcome:
                label = "failed" if outcome == "fail" else "undecided"
                yield Note(label, describe_judgement(each, targets))


def _remarks(document: Document) -> Iterator[Note]:
    """Yield what stands out, what makes figures misleading first; of each kind the first one."""
    found = list(sentences(document.analysis))
    alarms = [each for each in found if each.weight == "alarm"]
    yield from _firsts((each.label, Note(each.label, each.text)) for each in alarms)
    yield from (Note(label, text) for label, text in describe_neighbour(document))
    if document.duet is not None and document.ranking:
        yield Note("duet", describe_duet(document.duet))
    if document.ended_by is not None:
        yield Note("rounds", document.ended_by)
    yield from (Note("a part", part_in_words(part)) for part in document.plan.parts)
    if document.verification is not None:
        yield Note("verified", describe_verification(document.verification))
    yield from (Note("credits", describe_metric(each)) for each in document.credits)
    yield from (Note("unfinished", text) for text in unfinished(document))
    yield from (Note("lost", text) for text in say_lost(document))
    yield from (Note("replay", text) for _, text in list(describe_agreement(document))[:1])
    yield from _firsts((_kind(each), _warning(each)) for each in document.warnings)
    yield from (Note("server", describe_server(each)) for each in document.server)
    others = [each for each in found if each.weight != "alarm"]
    short = ((each.label, shorten(each.text, _LONGEST, placeholder=" …")) for each in others)
    yield from _firsts((label, Note(label, text)) for label, text in short)


def _firsts(notes: Iterable[tuple[str, Note]]) -> Iterator[Note]:
    """Yield the first note of each kind, and how many there are beside it."""
    kinds: dict[str, list[Note]] = defaultdict(list)
    for kind, note in notes:
        kinds[kind].append(note)
    for first, *others in kinds.values():
        more = f" ({len(others)} more like this)" if others else ""
        yield Note(first.label, f"{first.text}{more}")


def _kind(warning: RunWarning) -> str:
    return warning.message if warning.kind == "other" else warning.kind


def _warning(warning: RunWarning) -> Note:
    hint = f"; {warning.hint}" if warning.hint else ""
    return Note("warning", f"{warning.message}{hint}")


_Row = tuple[str, ...]
_Cells = Mapping[str, _Row]
"""By target: p50, p95, p99, rate and errors."""


def _table(blocks: Iterable[tuple[str, _Cells]], ratios: _Ratios, style: Style) -> Iterator[str]:
    """Yield a table of a block for each subject, without the columns that say nothing."""
    rows: list[_Row] = []
    for title, cells in blocks:
        subject = title.partition(_SHARE)[0]
        if len(cells) == 1:
            rows += [(title, *own, "") for own in cells.values()]
            continue
        rows.append((title, *("",) * (len(_COLUMNS) - 1)))
        rows += [
            (f"  {target}", *own, ratios.get((subject, target), DASH if ratios else ""))
            for target, own in cells.items()
        ]
    if not rows:  # nothing was measured
        return
    kept = [
        place for place in range(len(_COLUMNS)) if place == 0 or any(row[place] for row in rows)
    ]
    columns = [_COLUMNS[place] for place in kept]
    yield from lay_out_grid(columns, [[row[place] for place in kept] for row in rows], style).lines


def _blocks(document: Document) -> Iterator[tuple[str, _Cells]]:
    """Yield the figures of all transactions, then of the weightiest, on each target."""
    targets = document.summary.targets
    found = [(target.name, each) for target in targets for each in target.overall.transactions]
    if document.pooled:
        failed = Counter[str]()
        for target, each in found:
            failed[target] += each.errors
        yield (
            ALL,
            {
                each.target: _cells(document, each, each.throughput_per_s, failed[each.target])
                for each in document.pooled
            },
        )
    total = sum(each.count for _, each in found)
    for name in [*dict.fromkeys(each.name for _, each in found)][:_WEIGHTIEST]:
        own = {target: each for target, each in found if each.name == name}
        share = sum(each.count for each in own.values()) / total if total else 0.0
        title = f"{name}{_SHARE}{format_share(share)}" if document.pooled else name
        yield (
            title,
            {
                target: _cells(document, each.latency, each.throughput_per_s, each.errors)
                for target, each in own.items()
            },
        )


def _cells(
    document: Document, times: PooledFigures | Statistics, rate: float | None, errors: int
) -> _Row:
    percentiles = map(show_time, (times.p50_ns, times.p95_ns, times.p99_ns))
    return (*percentiles, "" if document.think_time else show_rate(rate), format_count(errors))


def _compared_blocks(comparison: Comparison) -> Iterator[tuple[str, _Cells]]:
    """Yield the figures of all transactions, then of the weightiest, of each contender."""
    figures = [each for each in comparison.compared if each.kind != "op"]
    values = {
        (each.subject, each.figure, row.label): show_value(each, row.value)
        for each in figures
        for row in each.standings
    }
    for subject in [*dict.fromkeys(each.subject for each in figures)][: _WEIGHTIEST + 1]:
        rows = {}
        for each in comparison.contenders:
            cells = (values.get((subject, kind.name, each.label), "") for kind in FIGURES)
            errors = format_count(each.errors) if subject == figures[0].subject else ""
            rows[each.label] = (*cells, errors)
        yield subject, rows


def _ratios_of(figures: Iterable[ComparedFigure]) -> _Ratios:
    """Return what is shown of medians, by subject and target: the best, or the ratio to it."""
    ratios = {}
    for figure in figures:
        if figure.kind == "op" or figure.figure != "p50":
            continue
        claims = {row.claim for row in figure.standings}
        for row in figure.standings:
            if row.claim in DIFFERS:
                ratios[figure.subject, row.label] = format_times(row.ratio)
            elif row.claim == "best" and claims & DIFFERS:
                ratios[figure.subject, row.label] = "best"
    return ratios
