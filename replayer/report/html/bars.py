"""Ranked bars: each figure of all targets, best first, with ratio, interval and claim."""

from collections.abc import Iterator, Mapping, Sequence

from replayer.measure import by_size, format_times
from replayer.report.charts import Markup, tag
from replayer.report.charts.frame import colour
from replayer.report.comparison import ComparedFigure, Comparison, ComparisonRow
from replayer.report.comparison_text import show_interval, show_value

__all__ = ["legend", "render_bars"]

_SHOWN = ("p50", "p95", "throughput")  # of transactions, as bars; the rest is in the full table
_LEAST_SHARE = 0.004  # chosen: so much of a bar can still be seen
_MOST_OPEN = 4  # subjects whose bars are shown at once: chosen, the others unfold


def render_bars(comparison: Comparison) -> Markup:
    """Return the bars of all subjects; those beyond a few are folded."""
    numbers = {contender.label: place for place, contender in enumerate(comparison.contenders)}
    groups: dict[str, list[ComparedFigure]] = {}
    for ranked in comparison.compared:
        if ranked.kind != "op" and ranked.figure in _SHOWN:
            groups.setdefault(ranked.subject, []).append(ranked)
    blocks = [_group(subject, groups[subject], numbers) for subject in by_size([*groups])]
    folded = blocks[_MOST_OPEN:]
    more = (
        tag("details", tag("summary", f"{len(folded)} more transactions"), *folded)
        if folded
        else None
    )
    return tag("div", *blocks[:_MOST_OPEN], more, class_="bars")


def legend(labels: Sequence[str]) -> Markup:
    """Return the colour of each target; one alone needs none."""
    if len(labels) < 2:  # noqa: PLR2004 - see above
        return Markup("")
    items = (
        tag("li", tag("span", class_=f"key {colour(place)}"), label)
        for place, label in enumerate(labels)
    )
    return tag("ul", *items, class_="legend")


def _group(subject: str, ranked: Sequence[ComparedFigure], numbers: Mapping[str, int]) -> Markup:
    rows = [row for item in ranked for row in _rows(item, numbers)]
    return tag("section", tag("h3", subject), tag("div", *rows, class_="ranked"))


def _rows(ranked: ComparedFigure, numbers: Mapping[str, int]) -> Iterator[Markup]:
    highest = max(standing.value for standing in ranked.standings) or 1.0
    yield tag("h4", _TITLES[ranked.figure])
    for standing in ranked.standings:
        share = max(standing.value / highest, _LEAST_SHARE)
        bar = tag(
            "svg",
            tag("rect", x=0, y=0, width=100 * share, height=10),
            viewBox="0 0 100 10",
            preserveAspectRatio="none",
            class_=f"bar {colour(numbers[standing.label])}",
            aria_hidden="true",
        )
        yield tag(
            "div",
            tag("span", standing.label, class_="who"),
            bar,
            tag("span", show_value(ranked, standing.value), class_="value"),
            tag("span", _says(standing), class_="says"),
            class_="row",
        )


_TITLES = {
    "p50": "half take at most (p50)",
    "p95": "95 of 100 take at most (p95)",
    "p99": "99 of 100 take at most (p99)",
    "throughput": "how many a second",
}


def _says(standing: ComparisonRow) -> str:
    if standing.claim == "best":
        return "best"
    if standing.ratio is None:
        return standing.claim
    sure = "" if standing.ratio_low is None else f" ({show_interval(standing)})"
    return f"{format_times(standing.ratio)}{sure}, {standing.claim}"
