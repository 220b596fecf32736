"""HTML: the report as one file that needs no network: first the result, then why, then the rest.

This module collects what a page shows of runs; ``templates`` has the markup, the style and the
script. The template escapes every text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from replayer._native import Histogram
from replayer.analysis.explain import cut_windows, explain
from replayer.analysis.slots import Distribution, Subject, read_distributions
from replayer.measure.clients import with_kinds
from replayer.measure.record import RunRecord
from replayer.measure.run import part_in_words
from replayer.measure.summarise import Of, samples_of
from replayer.measure.summary import Sweep, by_size, find_sweeps
from replayer.measure.units import format_many, format_times
from replayer.report.answer import begin_line
from replayer.report.charts import Chart, colour, draw_percentiles, draw_sweep
from replayer.report.claims import say_unranked
from replayer.report.comparing import MOST_CONTENDERS, Plans, compare
from replayer.report.comparison_text import TITLES, comparison_rows, show_interval
from replayer.report.composition import compose
from replayer.report.description import (
    client_rows,
    client_titles,
    describe_incident,
    describe_judgement,
    describe_run,
    footnotes,
    say_alarms,
    say_figures,
    say_verdict,
)
from replayer.report.document import ComparedFigure, Comparison, ComparisonRow, Document
from replayer.report.explaining import lines_of, title_of
from replayer.report.figures import COLUMNS, ERROR_TITLES, error_rows, figure_rows, show_value
from replayer.report.findings import acknowledgements, nothing_found, sentences
from replayer.report.plan_changes import same_work
from replayer.report.server import SERVER_TITLES, describe_server, server_rows
from replayer.report.timelines import (
    TIMELINE_KEY,
    Happenings,
    draw_heatmap,
    draw_metric,
    draw_timeline,
)

if TYPE_CHECKING:
    from jinja2 import Environment

_Context = dict[str, Any]
_SHOWN = {"p50": "p50", "p95": "p95", "throughput": "throughput (succeeded per second)"}
"""What of transactions is shown as bars; the rest is in the full table."""
_LEAST_SHARE = 0.004  # chosen: so much of a bar can still be seen
_MOST_CURVES = 12  # transactions with a percentile chart of their own: chosen
_MOST_OVER_TIME = 12  # targets with charts over time: chosen, so that pages stay small
_MOST_INCIDENTS = 30  # chosen


def render_html(records: Sequence[RunRecord], plans: Plans = "same plan") -> str:
    """Render runs as one HTML page, ranked against each other where they did the same work.

    With different plans they are ranked by what bears the same name. More targets than can be held
    side by side are not ranked, and the page says so.
    """
    return _render(records, plans, "base.html")


def render_part(records: Sequence[RunRecord], plans: Plans = "same plan") -> str:
    """Render the same as a part of a page that has a head, a style and a script of its own."""
    return _render(records, plans, "part.html")


def _render(records: Sequence[RunRecord], plans: Plans, layout: str) -> str:
    materials = [
        _Material(number, each, compose(each), read_distributions(each))
        for number, each in enumerate(records)
    ]
    targets = sum(len(material.document.targets) for material in materials)
    alike = plans == "different plans" or all(same_work(records[0], each) for each in records)
    ranked = alike and 1 < targets <= MOST_CONTENDERS
    comparison = compare(records, plans) if ranked else None
    crowd = f"{targets} targets are not ranked: a page holds {MOST_CONTENDERS} side by side at most"
    page = environment().get_template("page.html")
    return printable(
        page.render(
            layout=layout,
            names=", ".join(dict.fromkeys(record.run.plan.name for record in records)),
            headlines=tuple(_headlines(materials, comparison)),
            runs=[_describe(material) for material in materials],
            too_many=[crowd] if alike and targets > MOST_CONTENDERS else [],
            comparison=comparison,
            timeline_key=TIMELINE_KEY,
            figure_titles=("", *(column.title for column in COLUMNS[1:])),
            error_titles=ERROR_TITLES,
            **({} if comparison is None else _ranking(comparison)),
        )
    )


def render_chart(chart: Chart) -> str:
    """Render one chart as markup."""
    module: Any = environment().get_template("parts.html").module
    return printable(str(module.chart(chart)))


@lru_cache
def environment() -> "Environment":
    """Return what finds and renders the templates of pages."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 30 ms

    found = Environment(
        loader=PackageLoader("replayer.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    found.filters["places"] = "{:.6g}".format
    found.globals["colour"] = colour
    return found


def printable(page: str) -> str:
    """Return a page without control characters, which names and paths may hold."""
    bad = {ord(char) for char in set(page) if not char.isprintable() and char != "\n"}
    return page.translate(dict.fromkeys(bad, "\N{REPLACEMENT CHARACTER}"))


@dataclass(frozen=True, eq=False)
class _Material:
    """One run: its record, its report, and its distributions in time by subject."""

    number: int
    """Among those of the page."""
    record: RunRecord
    document: Document
    distributions: dict[Subject, Distribution]

    def histogram(self, target: int, transaction: str) -> Histogram:
        """Return the latencies of a transaction on a target, exactly as recorded."""
        return samples_of(self.record, Of(target, transaction, "transaction"))

    def whole(self, target: int) -> Distribution | None:
        """Return everything that a user waits for on a target: transactions, else ops."""
        for kind in ("transaction", "op"):
            own = [
                found
                for subject, found in self.distributions.items()
                if subject[:2] == (target, kind)
            ]
            if own:
                return _together(own)
        return None


def _together(parts: Sequence[Distribution]) -> Distribution:
    """Add distributions of the same slots."""
    bins = np.unique(np.concatenate([part.bins_ns for part in parts]))
    table = np.zeros((parts[0].table.shape[0], bins.size))
    for part in parts:
        table[:, np.searchsorted(bins, part.bins_ns)] += part.table
    own_s = np.maximum.reduce([part.own_s for part in parts])
    return Distribution(parts[0].slots, own_s, bins, table)


def _headlines(materials: Sequence[_Material], comparison: Comparison | None) -> Iterator[str]:
    if comparison is not None:
        yield from map(begin_line, comparison.headline)
    else:
        yield from (text for item in materials for text in say_figures(item.document))
    for item in materials:
        if item.document.verdict.outcome != "pass":  # its verdict says it already
            yield from say_alarms(item.document)


def _ranking(comparison: Comparison) -> _Context:
    numbers = {contender.label: place for place, contender in enumerate(comparison.contenders)}
    groups: dict[str, list[ComparedFigure]] = {}
    for ranked in comparison.compared:
        if ranked.kind != "op" and ranked.figure in _SHOWN:
            groups.setdefault(ranked.subject, []).append(ranked)
    return {
        "bars": [
            {"subject": subject, "figures": [_bars(each, numbers) for each in groups[subject]]}
            for subject in by_size([*groups])
        ],
        "unranked": tuple(say_unranked(comparison.unranked)),
        "ranking_titles": TITLES,
        "ranking": [row for ranked in comparison.compared for row in comparison_rows(ranked)],
        "difference_titles": ("", *(contender.label for contender in comparison.contenders)),
        "differences": [(item.what, *item.values) for item in comparison.differences],
    }


def _bars(ranked: ComparedFigure, numbers: Mapping[str, int]) -> _Context:
    highest = max(row.value for row in ranked.standings) or 1.0
    return {
        "title": _SHOWN[ranked.figure],
        "bars": [
            {
                "who": row.label,
                "colour": colour(numbers[row.label]),
                "width": 100 * max(row.value / highest, _LEAST_SHARE),
                "value": show_value(ranked, row.value),
                "says": _says(row),
            }
            for row in ranked.standings
        ],
    }


def _says(row: ComparisonRow) -> str:
    if row.claim == "best":
        return "best"
    if row.ratio is None:
        return row.claim
    sure = "" if row.ratio_low is None else f" ({show_interval(row)})"
    return f"{format_times(row.ratio)}{sure}, {row.claim}"


def _describe(material: _Material) -> _Context:
    """Return everything that the page says of one run."""
    document = material.document
    targets = len(document.targets)
    verdict = document.verdict
    return {
        "document": document,
        "folder": material.record.folder.name,
        "verdict": say_verdict(document),
        "sentence": _sentence(document),
        "judgements": [
            (each.outcome, describe_judgement(each, targets)) for each in verdict.judgements
        ],
        "reasons": [*verdict.reasons, *([document.failure] if document.failure else [])],
        "findings": list(sentences(document.analysis)),
        "nothing_found": nothing_found(document.analysis),
        "promises": list(acknowledgements(document.analysis)),
        "targets": [target.name for target in document.targets],
        **_charts(material),
        "figures": [
            {
                "name": target.name,
                "rows": [(row.name, *row.cells) for row in rows],
                "depths": [row.depth for row in rows],
            }
            for target in document.summary.targets
            for rows in [list(figure_rows(target.overall, document.load))]
        ],
        "errors": [row for target in document.summary.targets for row in error_rows(target)],
        "footnotes": tuple(footnotes(document)),
        "clients": list(client_rows(document)),
        "client_titles": client_titles(document),
        "conditions": list(describe_run(document)),
        "server": [(describe_server(each), server_rows(each)) for each in document.server],
        "server_titles": SERVER_TITLES,
        "incidents": [describe_incident(each) for each in document.incidents[:_MOST_INCIDENTS]],
    }


def _sentence(document: Document) -> str:
    where = ", ".join(target.name for target in document.targets)
    parts = "".join(f"; {part_in_words(part)}" for part in document.plan.parts)
    who = with_kinds(format_many(document.load.users, "user"), document.user_kinds)
    return f"{who} on {where}, {document.began}{parts}"


def _charts(material: _Material) -> _Context:
    summary = material.document.summary
    names = dict.fromkeys(
        found.name for target in summary.targets for found in target.overall.transactions
    )
    sweeps = find_sweeps([*names])
    swept = {name for sweep in sweeps for name in sweep.sizes}
    curves = (
        draw_percentiles(
            name, {each.name: material.histogram(each.index, name) for each in summary.targets}
        )
        for name in names
        if name not in swept
    )
    more = len(material.document.targets) - _MOST_OVER_TIME
    return {
        "percentiles": [*filter(None, curves)][:_MOST_CURVES],
        "sweeps": [*filter(None, (draw_sweep(sweep, summary) for sweep in sweeps))],
        "by_size": [
            {
                "stem": sweep.stem,
                "labels": [*sweep.labels.values()],
                "charts": [*filter(None, _by_size(sweep, material))],
            }
            for sweep in sweeps
        ],
        "over_time": [*_over_time(material)],
        "credits": [*_credits(material)],
        "more_targets": [f"{more} more targets are in the figures only."] if more > 0 else [],
    }


def _by_size(sweep: Sweep, material: _Material) -> Iterator[Chart | None]:
    """Yield a chart for each target, with a line for each size."""
    for target in material.document.summary.targets[:_MOST_CURVES]:
        yield draw_percentiles(
            target.name,
            {label: material.histogram(target.index, name) for name, label in sweep.labels.items()},
        )


def _over_time(material: _Material) -> Iterator[_Context]:
    """Yield the charts of each target, and the explanation of each of their moments."""
    analysis = material.document.analysis
    for number, target in enumerate(material.document.targets[:_MOST_OVER_TIME]):
        found = material.whole(target.index)
        if found is None:
            continue
        happenings = Happenings(
            steps=[step for step in analysis.steps if step.target == target.name],
            silences=[silence for silence in analysis.silences if silence.target == target.name],
        )
        windows, classes = cut_windows(found.slots), colour(number)
        names = [f"moment-{material.number}-{target.index}-{n}" for n in range(len(windows))]
        explained = [*zip(windows, names, strict=True)]
        charts = (
            draw_timeline(
                f"{target.name}: latency over time", found, happenings, explained, classes
            ),
            draw_heatmap(
                f"{target.name}: how many took how long, and when", found, explained, classes
            ),
        )
        facts = explain(material.record, target.index, windows)
        yield {
            "target": target.name,
            "charts": [*filter(None, charts)],
            "moments": [
                (name, title_of(each), [*lines_of(each)])
                for name, each in zip(names, facts, strict=True)
            ],
        }


def _credits(material: _Material) -> Iterator[Chart]:
    timeline = material.whole(0)
    if timeline is not None:
        charts = (draw_metric(each, timeline) for each in material.document.credits)
        yield from filter(None, charts)
