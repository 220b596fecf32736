"""A study as text: its tables, with the user's targets marked among the published rows.

The first screen says which target to use and where the targets stand, by the columns that the study
ranks by: each with the user's targets and the nearest published rows.
"""

import shlex
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from replayer.errors import EXIT_INCONCLUSIVE
from replayer.measure.summary import by_size
from replayer.measure.units import AT_LEAST, DASH, format_count, format_number
from replayer.report.claims import CLAIM_ROUNDS
from replayer.report.figures import longest, show_time
from replayer.report.first_screen import Note, answer_lines, fill_screen, lay_below
from replayer.report.style import PLAIN, Column, Style, lay_out_grid
from replayer.study.flow import exit_code_of
from replayer.study.journal import Journal
from replayer.study.model import Study
from replayer.study.results import Filled, ResultLine, ResultRow, StandOut, StepVerdict

if TYPE_CHECKING:
    from replayer.measure.run import Outcome

STORED = "writes are in"
_ALWAYS = 99
MARK = "\N{BLACK RIGHT-POINTING POINTER} "


@dataclass(frozen=True)
class Remarks:
    """What must be known of the steps beside their figures."""

    verdicts: Sequence[StepVerdict] = ()
    stand_outs: Sequence[StandOut] = ()


def render_study(
    study: Study,
    tables: Sequence[Filled],
    journal: Journal | None,
    remarks: Remarks = Remarks(),
    style: Style = PLAIN,
) -> str:
    """Render a study as text, ending with a newline."""
    lines = [
        *_heading(f"Study {study.letter}: {study.title}", style),
        *_wrapped(f"published: {study.source}", style),
        *(line for text in study.conditions for line in _wrapped(f"  {text}", style)),
        *(line for table in tables for line in _table(table, style)),
        *_elsewhere(tables, remarks.verdicts, style),
        *_stand_outs(remarks.stand_outs, style),
        "",
        *(line for text in _notes(study, tables, journal) for line in _wrapped(text, style)),
    ]
    return style.fit("\n".join(lines)) + "\n"


def _stand_outs(found: Sequence[StandOut], style: Style) -> Iterator[str]:
    if found:
        yield ""
        yield style.paint("What stands out", "heading")
    for item in found:
        yield from _wrapped(f"{item.step}: {item.label}: {item.says}", style)


def _elsewhere(
    tables: Sequence[Filled], verdicts: Sequence[StepVerdict], style: Style
) -> Iterator[str]:
    """Yield what steps whose figures are in no table say against themselves."""
    shown = {found.step for table in tables for found in table.against}
    others = [found for found in verdicts if found.outcome != "pass" and found.step not in shown]
    if others:
        yield ""
        yield from _against(others, style)


def _against(found: Sequence[StepVerdict], style: Style) -> Iterator[str]:
    for verdict in found:
        first, *rest = _wrapped(
            f"  {verdict.outcome.upper()}  {verdict.step}: {'; '.join(verdict.reasons)}", style
        )
        yield style.paint(first, verdict.outcome)
        yield from rest


def _table(table: Filled, style: Style) -> Iterator[str]:
    yield ""
    yield from _heading(table.title, style)
    if table.columns and table.rows:
        yield from _rows(table, style)
    elif table.lines:
        yield from _lines(table.lines, style)
    else:
        yield "  not measured"
    yield from _against(table.against, style)


def _rows(table: Filled, style: Style) -> Iterator[str]:
    stored = any(row.stored for row in table.rows)
    ratio = [f"to {table.ratio_to}"] if table.ratio_to else []
    ends = [*ratio, *([STORED] if stored else [])]
    cells = []
    for row in table.rows:
        own = "" if row.published else MARK
        line = [f"{own}{row.target}", str(row.rank or DASH), *_values(table, row)]
        line += [_ratio(row)] if table.ratio_to else []
        line += [row.stored or DASH] if stored else []
        cells.append(line)
    keys = {"rank", table.ranked_by, *ends}
    yield from _parts(["target", "rank", *table.columns, *ends], cells, keys, style)
    if len(_yours(table)) > 1:
        yield from _wrapped(_among_yours(table), style)


def _parts(
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    keys: Collection[str | None],
    style: Style,
) -> Iterator[str]:
    """Yield a table; the columns that it has no room for follow below, beside the names again."""
    # What rows are compared by stays, then the first figures.
    needs = [_ALWAYS if title in keys else -place for place, title in enumerate(titles)]
    grid = lay_out_grid([Column(*each) for each in zip(titles, needs, strict=True)], cells, style)
    yield from grid.lines
    rest = [0, *(place for place, title in enumerate(titles) if title in grid.left_out)]
    if grid.left_out:
        yield ""
        others = [[row[place] for place in rest] for row in cells]
        yield from _parts([titles[place] for place in rest], others, keys, style)


def _values(table: Filled, row: ResultRow) -> Iterator[str]:
    for title, value in zip(table.columns, row.values, strict=True):
        sign = "< " if title in row.below else AT_LEAST if title in row.at_least else ""
        said = row.says_also.get(title)
        if said is None and title in row.ratios:
            said = _times(row.ratios[title])
        behind = f" ({said})" if said else ""
        yield DASH if value is None else f"{sign}{format_number(value)}{behind}"


def _among_yours(table: Filled) -> str:
    """Say which of the user's rows the rounds show to differ from the best of them."""
    best, *others = _yours(table)
    words = {True: "differs", False: "no difference shown", None: "not enough measured to decide"}
    found = {
        word: [row.target for row in others if row.differs is differs]
        for differs, word in words.items()
    }
    said = [f"{word}: {', '.join(names)}" for word, names in found.items() if names]
    return f"  among yours: {'; '.join((f'{best.target} is best', *said))}"


def _yours(table: Filled) -> list[ResultRow]:
    """Return the user's rows that have a rank, best first."""
    return [row for row in table.rows if not row.published and row.rank is not None]


def _ratio(row: ResultRow) -> str:
    if row.says is not None:
        return row.says
    if row.ratio is None:
        return DASH
    return _times(row.ratio)


def _times(ratio: float) -> str:
    return f"{format_number(ratio)}x" if ratio >= 1 else f"1/{format_number(1 / ratio)}"


def _lines(lines: Sequence[ResultLine], style: Style) -> Iterator[str]:
    order = by_size(sorted({line.transaction for line in lines}))
    titles = ("transaction", "target", "count", "errors", "mean", "p50", "p95", "max")
    cells = [
        [
            line.transaction,
            line.target,
            format_count(line.count),
            format_count(line.errors),
            *map(show_time, (line.mean_ns, line.p50_ns, line.p95_ns)),
            longest(line.max_ns, is_bound=line.max_is_bound),
        ]
        for line in sorted(lines, key=lambda line: (order.index(line.transaction), line.target))
    ]
    yield from lay_out_grid([Column(title, 9) for title in titles], cells, style).lines


def _notes(study: Study, tables: Sequence[Filled], journal: Journal | None) -> Iterator[str]:
    yield from study.notes
    if journal is None:
        return
    yield f"{MARK}yours; the others as published, measured on other clients and at other times"
    if any(len(_yours(table)) > 1 for table in tables):
        yield (
            'among yours: "differs" means that each of its rounds is beyond each round of your '
            "best target, and the 95 % interval of the ratio excludes 1 (as in replayer compare). "
            f"This takes {CLAIM_ROUNDS} rounds"
        )
    if journal.state.quick:
        yield (
            "--quick: shorter and smaller than the published study; use the whole study to compare"
        )
    for name in study.steps:
        attempt = journal.last(name)
        says = "not run" if attempt is None else attempt.says
        if says is not None:
            yield f"{name}: {says}"
    yield f"run folders: {journal.path}"


def _heading(text: str, style: Style) -> Iterator[str]:
    for line in _wrapped(text, style):
        yield style.paint(line, "heading")


def _wrapped(text: str, style: Style) -> list[str]:
    return textwrap.wrap(
        text,
        max(style.width, 80),
        initial_indent="",
        subsequent_indent="    ",
        break_long_words=False,
        drop_whitespace=True,
    )


_MOST_SENTENCES = 4
_RANK_COLUMNS = (Column("", 9), Column("value", 8), Column("rank", 7), Column("to your best", 6))


def render_study_screen(
    study: Study,
    tables: Sequence[Filled],
    journal: Journal,
    remarks: Remarks,
    style: Style = PLAIN,
) -> str:
    """Render what decides, ending with a newline."""
    ranked = [table for table in tables if _yours(table)]
    answers = islice(_answers(ranked), _MOST_SENTENCES)
    parts = ([*answer_lines(answers, style)], [*_ranks(ranked, style)])
    body = lay_below(parts)
    return fill_screen(
        [_verdict(study, journal, remarks, style)],
        [*_reasons(study, journal, remarks)],
        body,
        [_next(study, ranked, journal), *_remarks(study, remarks)],
        f"replayer study --resume {journal.path} --details",
        style,
    )


def _verdict(study: Study, journal: Journal, remarks: Remarks, style: Style) -> str:
    code = exit_code_of(study, journal)
    outcomes: dict[int, Outcome] = {0: "pass", EXIT_INCONCLUSIVE: "inconclusive"}
    outcome = outcomes.get(code, "fail")
    passed = Counter(found.outcome for found in remarks.verdicts)["pass"]
    text = f"{outcome.upper()}  study {study.letter} ({study.name}): "
    text += f"{passed} of {len(study.steps)} steps can be trusted"
    shown = text + (f"  (exit code {code})" if code else "")
    return style.paint(shown, outcome)


def _value(table: Filled, row: ResultRow) -> float:
    """Return the figure that a table is ranked by."""
    value = row.values[table.columns.index(table.ranked_by or "")]
    return value or 0.0


def _times_worse(table: Filled, row: ResultRow) -> float:
    """Return how many times worse a row is than the user's best."""
    own, best = _value(table, row), _value(table, _yours(table)[0])
    low, high = sorted((own, best))
    return high / low if low else 0.0


def _answers(tables: Sequence[Filled]) -> Iterator[str]:
    """Yield what the tables say of the user's targets, the decisions first."""
    if not tables:
        yield "nothing was measured that this study ranks by"
    doubted: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        doubt = _doubt_of(table)
        if doubt is None or len(_yours(table)) == 1:
            yield from _decided(table)
        else:
            doubted[doubt].append(str(table.ranked_by))
    for doubt, figures in doubted.items():
        yield f"cannot be decided here by {', '.join(figures)}: {doubt}"
    undecided = [str(table.ranked_by) for table in tables if _lacks_rounds(table)]
    if undecided:
        yield (
            f"cannot be decided by {', '.join(undecided)}: that takes {CLAIM_ROUNDS} rounds, "
            "and fewer were measured"
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
            sure = "" if row.worse is None else f" ({_between(row.worse)}; 95 %)"
            yield f"use {best.target}: by {by}, {row.target} is {times} times worse{sure}"
    alike = [row.target for row in others if row.differs is False]
    if alike:
        yield f"no difference is shown by {by} between {best.target} and {', '.join(alike)}"


def _doubt_of(table: Filled) -> str | None:
    """Return why the figures of a table decide nothing; None if they do."""
    for found in table.against:
        if found.outcome == "inconclusive":
            return found.reasons[0] if found.reasons else f"{found.step} is inconclusive"
    return None


def _lacks_rounds(table: Filled) -> bool:
    """Whether rounds alone are missing to decide."""
    return _doubt_of(table) is None and any(row.differs is None for row in _yours(table)[1:])


def _between(worse: tuple[float, float]) -> str:
    return " to ".join(map(format_number, worse))


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


def _ranks(tables: Sequence[Filled], style: Style) -> Iterator[str]:
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
            ratio = "" if row.published or not several else _beside_best(table, row)
            rows.append((f"  {mark}{row.target}", value, f"{row.rank} of {len(ranked)}", ratio))
    kept = [place for place in range(len(_RANK_COLUMNS)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in kept] for row in rows]
    yield from lay_out_grid([_RANK_COLUMNS[place] for place in kept], cells, style).lines


def _shown(ranked: Sequence[ResultRow]) -> list[ResultRow]:
    """Return the user's rows and the published ones next to them."""
    own = {place for place, row in enumerate(ranked) if not row.published}
    near = {place + step for place in own for step in (-1, 0, 1)}
    return [row for place, row in enumerate(ranked) if place in near]


def _beside_best(table: Filled, row: ResultRow) -> str:
    if row is _yours(table)[0]:
        return "best"
    if _doubt_of(table) is not None or row.differs is None:
        return "not decided"
    if not row.differs:
        return "no difference"
    return f"{format_number(_times_worse(table, row))} times worse"


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


def _next(study: Study, tables: Sequence[Filled], journal: Journal) -> Note:
    """Say what to do with the answers."""
    words = "".join(f" --target {shlex.quote(target)}" for target in journal.state.targets)
    whole = f"replayer study {shlex.quote(journal.state.study)}{words}"
    tried = [name for name in study.steps if journal.last(name) is not None]
    if not all(map(journal.is_done, tried)):
        text = f"some steps are not done; continue with: replayer study --resume {journal.path}"
    elif any(found.is_saturated for table in tables for found in table.against):
        text = f"use a client with more CPUs, and nothing beside it; then: {whole}"
    elif journal.state.quick:
        text = f"this was a short look; the whole study decides: {whole}"
    elif any(map(_lacks_rounds, tables)):
        text = f"measure more rounds: {whole} --rounds {2 * CLAIM_ROUNDS}"
    else:
        text = f"all figures and what stands out: replayer study --resume {journal.path} --details"
    return Note("next", text)


def _remarks(study: Study, remarks: Remarks) -> Iterator[Note]:
    yield from (Note("note", text) for text in study.notes)
    yield Note("published", f"rows without {MARK.strip()} were measured on other clients")
    for found in remarks.stand_outs:
        yield Note(found.label, f"{found.step}: {found.says}")
