"""A comparison as text for a terminal, and as Markdown for a pull request."""

from collections.abc import Iterator, Sequence

from replayer.errors import in_one_line
from replayer.measure.units import DASH, format_ratio, format_times
from replayer.report.claims import say_unranked
from replayer.report.document import ComparedFigure, Comparison, ComparisonRow
from replayer.report.figures import show_spread, show_value
from replayer.report.markdown import escape, table_lines
from replayer.report.style import PLAIN, Column, Style, lay_out_grid
from replayer.report.table import heading, note, wrapped

TITLES = ("", "target", "value", "ratio", "95 % interval", "rounds", "")
_NEEDS = (9, 8, 7, 6, 4, 1, 5)


def render_comparison_table(comparison: Comparison, style: Style = PLAIN) -> str:
    """Render a comparison as text, ending with a newline."""
    lines = [
        *(style.paint(in_one_line(text), "heading") for text in comparison.headline),
        *_differences(comparison, style),
        *_ranking(comparison, style),
        "",
        *(line for text in comparison.method for line in note(text, style)),
        *(line for text in comparison.cautions for line in wrapped("caution", text, 9, style)),
    ]
    return style.fit("\n".join(lines)) + "\n"


def render_comparison_markdown(comparison: Comparison) -> str:
    """Render a comparison as Markdown, ending with a newline."""
    head, *others = comparison.headline
    lines = [f"# {escape(head)}", *(line for text in others for line in ("", escape(text)))]
    rows = [row for ranked in comparison.compared for row in comparison_rows(ranked)]
    lines += ["", "## Ranking", *(table_lines(TITLES, "llrrrrl", rows) if rows else ())]
    lines += [line for text in say_unranked(comparison.unranked) for line in ("", escape(text))]
    lines += ["", "## Differences between the contenders"]
    titles = ("", *(contender.label for contender in comparison.contenders))
    differing = [(item.what, *item.values) for item in comparison.differences]
    lines += [*table_lines(titles, "l" * len(titles), differing)] if differing else ["", "None."]
    lines += ["", *(f"- {escape(text)}" for text in (*comparison.cautions, *comparison.method))]
    return "\n".join(lines) + "\n"


def comparison_rows(ranked: ComparedFigure) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one figure: what, who, value, ratio, interval, rounds, claim."""
    for standing in ranked.standings:
        yield (
            f"{ranked.subject} {ranked.figure}",
            standing.label,
            show_value(ranked, standing.value),
            format_times(standing.ratio),
            show_interval(standing),
            show_spread(ranked, standing),
            standing.claim,
        )


def show_interval(standing: ComparisonRow) -> str:
    """Return the interval of a ratio; a dash where there is none."""
    if standing.ratio_low is None or standing.ratio_high is None:
        return DASH
    if standing.ratio_high > _WIDEST * standing.ratio_low:
        return "too wide"
    return f"{format_ratio(standing.ratio_low)}{DASH}{format_ratio(standing.ratio_high)}"


_WIDEST = 100  # chosen: such an interval says nothing but that more must be measured


def _ranking(comparison: Comparison, style: Style) -> Iterator[str]:
    yield from heading("Ranking: ratio to the best", style)
    rows: list[Sequence[str]] = []
    for ranked in comparison.compared:
        for place, row in enumerate(comparison_rows(ranked)):
            rows.append((row[0] if place == 0 else "", *row[1:]))
    if not (rows or comparison.unranked):
        yield "nothing was measured on two of them"
    if rows:
        columns = [Column(title, need) for title, need in zip(TITLES, _NEEDS, strict=True)]
        yield from lay_out_grid(columns, rows, style).lines
    for text in say_unranked(comparison.unranked):
        yield from note(text, style)


def _differences(comparison: Comparison, style: Style) -> Iterator[str]:
    if not comparison.differences:
        return
    yield from heading("What differs between the targets", style)
    labels = [contender.label for contender in comparison.contenders]
    for item in comparison.differences:
        yield in_one_line(item.what)
        for label, value in zip(labels, item.values, strict=True):
            yield from wrapped(f"  {label}", value, max(map(len, labels)) + 4, style)
