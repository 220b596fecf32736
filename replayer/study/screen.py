"""The first screen of a study: which target to use, and where the targets stand.

The columns that a study ranks by are shown alone, each with the user's targets and the nearest
published rows. Everything else is in the details.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from replayer.measure.units import format_number
from replayer.report.claims import CLAIM_ROUNDS
from replayer.report.first_screen import Note, answer_lines, fill_screen
from replayer.report.style import PLAIN, Column, Style, lay_out_grid
from replayer.study.flow import exit_code_of
from replayer.study.journal import Journal
from replayer.study.model import Study
from replayer.study.results import Filled, ResultRow
from replayer.study.table import MARK, Remarks

_MOST_SENTENCES = 4
_COLUMNS = (Column("", 9), Column("value", 8), Column("rank", 7), Column("to your best", 6))


def render_study_screen(
    study: Study,
    tables: Sequence[Filled],
    journal: Journal,
    remarks: Remarks,
    style: Style = PLAIN,
) -> str:
    """Render what decides, ending with a newline."""
    ranked = [table for table in tables if _yours(table)]
    answers = islice(_answers(ranked, quick=journal.state.quick), _MOST_SENTENCES)
    body = ["", *answer_lines(answers, style), "", *_table(ranked, style)]
    return fill_screen(
        [_verdict(study, journal, remarks, style)],
        [*_reasons(study, journal, remarks)],
        body,
        [*_notes(study, journal, remarks)],
        f"replayer study --resume {journal.path} --details",
        style,
    )


def _verdict(study: Study, journal: Journal, remarks: Remarks, style: Style) -> str:
    code = exit_code_of(study, journal)
    outcome = {0: "pass", 4: "inconclusive"}.get(code, "fail")
    passed = Counter(found.outcome for found in remarks.verdicts)["pass"]
    text = f"{outcome.upper()}  study {study.letter} ({study.name}): "
    text += f"{passed} of {len(study.steps)} steps prove their figures"
    shown = text + (f"  (exit code {code})" if code else "")
    return style.paint(shown, outcome)  # type: ignore[arg-type] # one of the three roles


def _yours(table: Filled) -> list[ResultRow]:
    """Return the user's rows that have a rank, best first."""
    return [row for row in table.rows if not row.published and row.rank is not None]


def _value(table: Filled, row: ResultRow) -> float:
    """Return the figure that a table is ranked by."""
    value = row.values[table.columns.index(table.ranked_by or "")]
    return value or 0.0


def _times_worse(table: Filled, row: ResultRow) -> float:
    """Return how many times worse a row is than the user's best."""
    own, best = _value(table, row), _value(table, _yours(table)[0])
    low, high = sorted((own, best))
    return high / low if low else 0.0


def _answers(tables: Sequence[Filled], *, quick: bool) -> Iterator[str]:
    """Yield what the tables say of the user's targets, the decisions first."""
    if not tables:
        yield "nothing was measured that this study ranks by"
    for table in tables:
        yield from _decided(table)
    undecided = [
        str(table.ranked_by)
        for table in tables
        if any(row.differs is None for row in _yours(table)[1:])
    ]
    if undecided:
        why = "--quick has one round" if quick else "fewer were measured"
        yield (
            f"cannot be decided by {', '.join(undecided)}: that takes {CLAIM_ROUNDS} rounds, "
            f"and {why}"
        )


def _decided(table: Filled) -> Iterator[str]:
    """Yield which of the user's targets differ by one table, and which do not."""
    best, *others = _yours(table)
    by = table.ranked_by
    if not others:
        yield f"by {by}, {_among(table, best)}"
    for row in others:
        if row.differs:
            times = format_number(_times_worse(table, row))
            yield f"use {best.target}: by {by}, {row.target} is {times} times worse"
    alike = [row.target for row in others if row.differs is False]
    if alike:
        yield f"no difference is shown by {by} between {best.target} and {', '.join(alike)}"


def _among(table: Filled, row: ResultRow) -> str:
    """Say where a row stands among the published."""
    ranked = [each for each in table.rows if each.rank is not None]
    place = ranked.index(row)
    beside = [
        f"{word} {each.target} ({format_number(_value(table, each))})"
        for word, at in (("behind", place - 1), ("ahead of", place + 1))
        if 0 <= at < len(ranked)
        for each in [ranked[at]]
    ]
    where = f", {' and '.join(beside)}" if beside else ""
    return (
        f"{row.target} ({format_number(_value(table, row))}) is {row.rank} of {len(ranked)}{where}"
    )


def _table(tables: Sequence[Filled], style: Style) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    if not tables:
        return
    for table in tables:
        rows.append((table.ranked_by or "", "", "", ""))
        ranked = [each for each in table.rows if each.rank is not None]
        several = len(_yours(table)) > 1
        for row in _shown(ranked):
            mark = "" if row.published else MARK
            value = format_number(_value(table, row))
            ratio = "" if row.published or not several else _ratio(table, row)
            rows.append((f"  {mark}{row.target}", value, f"{row.rank} of {len(ranked)}", ratio))
    kept = [place for place in range(len(_COLUMNS)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in kept] for row in rows]
    yield from lay_out_grid([_COLUMNS[place] for place in kept], cells, style).lines


def _shown(ranked: Sequence[ResultRow]) -> list[ResultRow]:
    """Return the user's rows and the published ones next to them."""
    own = {place for place, row in enumerate(ranked) if not row.published}
    near = {place + step for place in own for step in (-1, 0, 1)}
    return [row for place, row in enumerate(ranked) if place in near]


def _ratio(table: Filled, row: ResultRow) -> str:
    if row is _yours(table)[0]:
        return "best"
    words = {True: "", False: " (no difference shown)", None: " (not decided)"}[row.differs]
    return f"{format_number(_times_worse(table, row))} times worse{words}"


def _reasons(study: Study, journal: Journal, remarks: Remarks) -> Iterator[Note]:
    for verdict in remarks.verdicts:
        if verdict.outcome != "pass":
            first, *more = verdict.reasons or ("no reason is known",)
            rest = f" ({len(more)} more)" if more else ""
            yield Note("because", f"{verdict.step}: {verdict.outcome}: {first}{rest}")
    for name in study.steps:
        attempt = journal.last(name)
        says = "not run" if attempt is None else attempt.says
        if says is not None:
            yield Note("step", f"{name}: {says}")


def _notes(study: Study, journal: Journal, remarks: Remarks) -> Iterator[Note]:
    yield from (Note("note", text) for text in study.notes)
    if journal.state.quick:
        yield Note("quick", "shorter and smaller than the published study; compare with the whole")
    yield Note("published", f"rows without {MARK.strip()} were measured on other clients")
    for found in remarks.stand_outs:
        yield Note(found.label, f"{found.step}: {found.says}")
