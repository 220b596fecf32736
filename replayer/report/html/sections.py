"""Sections of the page that belong to one run: findings, charts, figures, conditions."""

from collections.abc import Iterator

from replayer.measure import Sweep, find_sweeps
from replayer.report.charts import (
    TIMELINE_KEY,
    Happenings,
    Markup,
    draw_heatmap,
    draw_percentiles,
    draw_sweep,
    draw_timeline,
    tag,
)
from replayer.report.charts.frame import colour
from replayer.report.clients import client_rows, client_titles
from replayer.report.description import (
    describe_incident,
    describe_judgement,
    describe_run,
    footnotes,
)
from replayer.report.document import Document
from replayer.report.figures import COLUMNS, error_rows, figure_rows
from replayer.report.findings import acknowledgements, nothing_found, sentences
from replayer.report.html.bars import legend
from replayer.report.html.material import Material
from replayer.report.html.tables import facts, table

__all__ = [
    "charts",
    "clients",
    "conditions",
    "figures",
    "findings",
    "incidents",
    "promises",
    "verdict",
]

_MOST_CURVES = 12  # transactions with a percentile chart of their own: chosen
_MOST_OVER_TIME = 12  # targets with charts over time: chosen, so that pages stay small
_MOST_INCIDENTS = 30  # chosen
_MOST_OPEN = 8  # findings that are shown at once, worst first: chosen, the others unfold


def verdict(document: Document) -> Iterator[Markup]:
    """Yield the verdict: the thresholds, why it is inconclusive, and what warns."""
    found = document.verdict
    targets = len(document.targets)
    items = [
        tag(
            "li",
            tag("span", judgement.outcome, class_=f"badge {judgement.outcome}"),
            " " + describe_judgement(judgement, targets),
        )
        for judgement in found.judgements
    ]
    if items:
        yield tag("ul", *items, class_="plain")
    notes = [*found.reasons, *([document.failure] if document.failure else [])]
    for text in notes:
        yield tag("p", tag("strong", "because "), text)
    for warning in document.warnings:
        hint = tag("em", f" {warning.hint}") if warning.hint else None
        yield tag("p", tag("strong", "warning "), warning.message, hint, class_="warning")


def findings(document: Document) -> Iterator[Markup]:
    """Yield what stands out, and what could not be looked for."""
    found = list(sentences(document.analysis))
    if found:
        items = [
            tag("li", tag("span", item.label, class_=f"badge {item.weight}"), f" {item.text}")
            for item in found
        ]
        yield tag("ul", *items[:_MOST_OPEN], class_="plain")
        folded = items[_MOST_OPEN:]
        if folded:
            more = tag("ul", *folded, class_="plain")
            yield tag("details", tag("summary", f"{len(folded)} more"), more)
    else:
        yield tag("p", nothing_found(document.analysis))
    for note in document.analysis.notes:
        yield tag("p", note, class_="faint")


def promises(document: Document) -> Iterator[Markup]:
    """Yield where written data is, for each target; nothing where nothing is written."""
    found = list(acknowledgements(document.analysis))
    if found:
        yield tag("p", "Where written data is when a transaction has ended:", class_="faint")
        yield facts(found)


def charts(material: Material) -> Iterator[Markup]:
    """Yield the charts of a run: percentiles, sweeps, then time and heat of each target."""
    document = material.document
    sweeps = find_sweeps(material.transactions)
    swept = {name for sweep in sweeps for name in sweep.sizes}
    targets = [target.name for target in document.targets]
    candidates = (
        draw_percentiles(
            name,
            {
                target.name: material.histogram(target.index, name)
                for target in document.summary.targets
            },
        )
        for name in material.transactions
        if name not in swept
    )
    if curves := [curve for curve in candidates if curve is not None]:
        yield tag("h3", "Latency by percentile")
        yield legend(targets)
        yield tag("div", *curves[:_MOST_CURVES], class_="charts")
    if sweeps:
        yield tag("h3", "Latency by size")
        yield legend(targets)
        drawn = (draw_sweep(sweep, document.summary) for sweep in sweeps)
        yield tag("div", *drawn, class_="charts")
    for sweep in sweeps:
        yield tag("h3", f"{sweep.stem}: latency by percentile, for each size")
        yield legend([*sweep.labels.values()])
        yield tag("div", *_sweep_by_percentile(sweep, material), class_="charts")
    yield tag("h3", "Latency over time")
    yield tag("p", f"All transactions together. Lines: {TIMELINE_KEY}.", class_="faint")
    yield tag("div", *_over_time(material), class_="charts")
    more = len(document.targets) - _MOST_OVER_TIME
    if more > 0:
        yield tag("p", f"{more} more targets are in the figures only.", class_="faint")


def _sweep_by_percentile(sweep: Sweep, material: Material) -> Iterator[Markup | None]:
    """Yield a chart for each target, with a line for each size."""
    for target in material.document.summary.targets[:_MOST_CURVES]:
        yield draw_percentiles(
            target.name,
            {label: material.histogram(target.index, name) for name, label in sweep.labels.items()},
        )


def _over_time(material: Material) -> Iterator[Markup | None]:
    for number, target in enumerate(material.document.targets[:_MOST_OVER_TIME]):
        found = material.whole(target.index)
        if found is None:
            continue
        analysis = material.document.analysis
        happenings = Happenings(
            steps=[step for step in analysis.steps if step.target == target.name],
            silences=[silence for silence in analysis.silences if silence.target == target.name],
        )
        classes = colour(number)
        yield draw_timeline(f"{target.name}: latency over time", found, happenings, classes)
        yield draw_heatmap(f"{target.name}: how many took how long, and when", found, classes)


def figures(document: Document) -> Iterator[Markup]:
    """Yield the figures of each target: transactions with their ops; then the errors."""
    for target in document.summary.targets:
        yield tag("h3", target.name)
        titles = ("", *(column.title for column in COLUMNS[1:]))
        rows = [
            (tag("span", row.name, class_=f"depth{row.depth}"), *row.cells)
            for row in figure_rows(target.overall, document.load)
        ]
        yield table(titles, rows, "figures") if rows else tag("p", "Nothing was measured.")
    errors = [row for target in document.summary.targets for row in error_rows(target)]
    if errors:
        yield tag("h3", "Errors")
        yield table(("where", "target", "outcome", "count", "mean", "max"), errors, "figures")
    for text in footnotes(document):
        yield tag("p", text, class_="faint")


def clients(document: Document) -> Iterator[Markup]:
    """Yield who measured how much of each figure; nothing where it was one process."""
    rows = list(client_rows(document))
    if rows:
        yield table(client_titles(document), rows, "figures")


def conditions(document: Document) -> Markup:
    """Return what a reader must know to compare the figures."""
    return facts(describe_run(document))


def incidents(document: Document) -> Iterator[Markup]:
    """Yield the first errors, what hung and the slowest calls."""
    lines = [describe_incident(item) for item in document.incidents[:_MOST_INCIDENTS]]
    if lines:
        yield tag("pre", "\n".join(lines), tabindex="0")
