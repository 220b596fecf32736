"""The page: what comes out first, then why, then everything else. One file, no network.

Style and script are files of this package and go into the page; a policy in its head forbids it to
load anything.
"""

from collections.abc import Iterator, Sequence
from importlib import resources

from replayer.measure import RunRecord, format_many, part_in_words
from replayer.measure.kinds import with_kinds
from replayer.report.charts import Markup, join, tag
from replayer.report.claims import say_unranked
from replayer.report.comparing import MOST_CONTENDERS, Plans, compare
from replayer.report.comparison import Comparison
from replayer.report.comparison_text import TITLES, comparison_rows
from replayer.report.headline import say_alarms, say_figures, say_verdict
from replayer.report.html.bars import legend, render_bars
from replayer.report.html.material import Material, collect_material
from replayer.report.html.sections import (
    charts,
    clients,
    conditions,
    figures,
    findings,
    incidents,
    promises,
    verdict,
)
from replayer.report.html.tables import badge, table
from replayer.report.plan_changes import same_work

__all__ = ["render_html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def render_html(records: Sequence[RunRecord], plans: Plans = "same plan") -> str:
    """Render runs as one HTML page, ranked against each other where they did the same work.

    Args:
        records: The runs.
        plans: With different plans they are ranked by what bears the same name.

    More targets than can be held side by side are told of without a ranking.
    """
    materials = [collect_material(record) for record in records]
    targets = sum(len(material.document.targets) for material in materials)
    alike = plans == "different plans" or all(same_work(records[0], each) for each in records)
    ranked = alike and 1 < targets <= MOST_CONTENDERS
    comparison = compare(records, plans) if ranked else None
    names = ", ".join(dict.fromkeys(record.run.plan.name for record in records))
    body = [
        _header(names, materials, comparison),
        *([tag("section", *_ranking(comparison))] if comparison else []),
        *([_unranked(targets)] if alike and targets > MOST_CONTENDERS else []),
        *(_run(material, alone=len(materials) == 1) for material in materials),
        *([tag("section", *_method(comparison))] if comparison else []),
        tag("div", id="tip", hidden="hidden"),
        tag("script", Markup(_part("page.js"))),
    ]
    return f"<!doctype html>\n{tag('html', _head(names), tag('body', *body), lang='en')}\n"


def _head(names: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{names} \N{EN DASH} replayer"),
        tag("style", Markup(_part("page.css"))),
    )


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _header(names: str, materials: Sequence[Material], comparison: Comparison | None) -> Markup:
    figures = (text for item in materials for text in say_figures(item.document))
    alarms = (
        text
        for item in materials
        for text in say_alarms(item.document)
        if item.document.verdict.outcome != "pass"  # its verdict says it already
    )
    headlines = (*(comparison.headline if comparison else figures), *alarms)
    said = [
        join(
            tag(
                "p",
                badge(item.document.verdict.outcome),
                f" {say_verdict(item.document)}.",
                class_="verdict",
            ),
            tag("p", _sentence(item), class_="faint"),
        )
        for item in materials
    ]
    return tag(
        "header",
        tag("button", "light / dark", id="theme", type="button"),
        tag("h1", names),
        *said,
        *(tag("p", text, class_="headline") for text in headlines),
    )


def _sentence(material: Material) -> str:
    document = material.document
    where = ", ".join(target.name for target in document.targets)
    parts = "".join(f"; {part_in_words(part)}" for part in document.plan.parts)
    who = with_kinds(format_many(document.load.users, "user"), document.user_kinds)
    return f"{who} on {where}, {document.began}{parts}"


def _unranked(targets: int) -> Markup:
    text = f"{targets} targets are not ranked: a page holds {MOST_CONTENDERS} side by side at most"
    return tag("section", tag("p", text, class_="faint"))


def _ranking(comparison: Comparison) -> Iterator[Markup]:
    yield tag("h2", "Ranking")
    yield legend([contender.label for contender in comparison.contenders])
    for text in comparison.cautions:
        yield tag("p", text, class_="warning")
    yield render_bars(comparison)
    for text in say_unranked(comparison.unranked):
        yield tag("p", text, class_="faint")
    rows = [row for ranked in comparison.compared for row in comparison_rows(ranked)]
    if rows:
        yield tag(
            "details",
            tag("summary", "Every figure, ops too"),
            table(TITLES, rows, "figures"),
        )
    if comparison.differences:
        titles = ("", *(contender.label for contender in comparison.contenders))
        yield tag("h3", "In what the contenders differ")
        yield table(titles, [(item.what, *item.values) for item in comparison.differences])


def _method(comparison: Comparison) -> Iterator[Markup]:
    yield tag("h2", "How the ranking was made")
    for text in comparison.method:
        yield tag("p", text)


def _run(material: Material, *, alone: bool) -> Markup:
    document = material.document
    return join(
        None if alone else tag("h2", f"Run {material.record.folder.name}", class_="run"),
        _section("Verdict", list(verdict(document))),
        _section("What stands out", list(findings(document))),
        _section("What a write was worth", list(promises(document))),
        _section("Charts", list(charts(material))),
        _section("Figures", list(figures(document))),
        _section("How much came from which client", list(clients(document))),
        _section("Conditions", [conditions(document)]),
        _section("Errors, stalls and the slowest calls", list(incidents(document))),
    )


def _section(title: str, parts: Sequence[Markup]) -> Markup | None:
    return tag("section", tag("h2", title), *parts) if parts else None
