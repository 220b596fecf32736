"""The pages of past runs and of traces: tables made here, in threads, so that nobody waits."""

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, render_template, request, send_file

from replayer.measure import Run, TransactionSummary, load_run, samples_needed
from replayer.measure.units import format_count, format_rate, format_time_ns, format_times
from replayer.report import (
    Compared,
    Document,
    compose,
    render_csv,
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_table,
    show_interval,
    show_value,
)
from replayer.report.claims import say_unranked
from replayer.run.threads import call_in_thread
from replayer.trace import shipped_traces
from replayer.web.form import REPLAY_CACHES, REPLAY_PACES
from replayer.web.library import list_traces
from replayer.web.run_control import RunControl
from replayer.web.run_history import (
    PastRun,
    compare_runs,
    find_run,
    list_runs,
    render_comparison,
)
from replayer.web.start_answer import answer_order

__all__ = ["add_comparison", "add_library", "add_runs"]

FORMS: dict[str, tuple[Callable[[Document], str], str]] = {
    "json": (render_json, "application/json"),
    "md": (render_markdown, "text/markdown"),
    "csv": (render_csv, "text/csv"),
    "xml": (render_junit, "application/xml"),
}

MOST_NAMED = 3  # chosen: a line of a table; the report has them all


def add_runs(blueprint: Blueprint, control: RunControl) -> None:
    """Add the list of runs, and the report of each in every form."""
    folder = control.form.runs

    @blueprint.route("/runs")
    def runs() -> str:
        found = call_in_thread(list_runs, folder)
        rows = [_row(past) for past in found]
        return render_template("replayer/runs.html", rows=rows, folder=folder.absolute())

    @blueprint.route("/runs/<name>")
    def run(name: str) -> str:
        document = call_in_thread(_document, folder, name)
        text = call_in_thread(render_table, document)
        return render_template("replayer/run.html", name=name, document=document, text=text)

    @blueprint.route("/runs/<name>/report.<form>")
    def report(name: str, form: str) -> Response:
        if form not in FORMS:
            return Response("no such form", status=404)
        render, kind = FORMS[form]
        text = render(call_in_thread(_document, folder, name))
        return send_file(
            BytesIO(text.encode()),
            mimetype=kind,
            as_attachment=True,
            download_name=f"replayer-{_in_a_header(name)}.{form}",
        )

    @blueprint.route("/runs/<name>/report.html")
    def page(name: str) -> str:
        record = call_in_thread(load_run, find_run(folder, name))
        return call_in_thread(render_html, [record])


def _in_a_header(name: str) -> str:
    """Return a folder's name without line ends and what else no header can hold."""
    return "".join(letter if letter.isprintable() else "_" for letter in name)


def add_comparison(blueprint: Blueprint, control: RunControl) -> None:
    """Add the comparison of several runs."""
    folder = control.form.runs

    def chosen() -> list[Path]:
        return [find_run(folder, name) for name in request.args.getlist("run")]

    @blueprint.route("/compare")
    def compare() -> str:
        found = call_in_thread(compare_runs, chosen())
        return render_template(
            "replayer/compare.html",
            notes=found.notes,
            comparison=found.comparison,
            ranking=[_ranked(each) for each in found.comparison.compared],
            unranked=[*say_unranked(found.comparison.unranked)],
            columns=[(each.label, Path(each.folder).name) for each in found.comparison.contenders],
            runs=request.args.getlist("run"),
        )

    @blueprint.route("/compare.html")
    def comparison_page() -> str:
        return call_in_thread(render_comparison, chosen())


def add_library(blueprint: Blueprint, control: RunControl) -> None:
    """Add the list of traces, and the start of a replay."""

    @blueprint.route("/traces")
    def traces() -> str:
        return render_template(
            "replayer/traces.html",
            entries=call_in_thread(list_traces),
            targets=list(control.form.words),
            caches=REPLAY_CACHES,
            paces=REPLAY_PACES,
            startable=control.has_scenario_users,
        )

    @blueprint.route("/replay", methods=["POST"])
    def replay() -> Response:
        traces = list(shipped_traces())
        return answer_order(control, lambda sent: control.form.read_replay(sent, traces))


def _document(folder: Path, name: str) -> Document:
    return compose(load_run(find_run(folder, name)))


def _row(past: PastRun) -> dict[str, Any]:
    run = past.run
    return {
        "name": past.name,
        "began": run.began.replace("T", " ").removesuffix("Z"),
        "scenario": run.plan.name,
        "targets": ", ".join(_target(run)),
        "users": format_count(run.load.users),
        "cache": run.cache.asked,
        "outcome": run.verdict or run.status,
        "errors": _errors(run),
        "figures": _figures(run),
    }


def _target(run: Run) -> list[str]:
    return [f"{target.name} ({target.mounts[0].filesystem})" for target in run.targets]


def _errors(run: Run) -> str:
    if run.summary is None:
        return ""
    return format_count(sum(target.overall.errors for target in run.summary.targets))


def _figures(run: Run) -> list[dict[str, Any]]:
    """Return the p95 and the rate of each transaction, in a line each, by target."""
    if run.summary is None:
        return []
    several = len(run.summary.targets) > 1
    return [
        {"target": target.name if several else "", "lines": [*_lines(target.overall.transactions)]}
        for target in run.summary.targets
    ]


def _lines(transactions: Sequence[TransactionSummary]) -> Iterator[str]:
    """Yield a line for each transaction that has a p95, and one for all that have none."""
    for found in transactions:
        if found.latency.p95_ns is not None:
            p95, rate = format_time_ns(found.latency.p95_ns), found.throughput_per_s or 0
            yield f"{found.name}: p95 {p95}, {format_rate(rate)}"
    few = [found for found in transactions if found.latency.p95_ns is None]
    if few:
        named = ", ".join(f"{found.name} ({found.latency.count:,})" for found in few[:MOST_NAMED])
        more = f" and {len(few) - MOST_NAMED} more" if len(few) > MOST_NAMED else ""
        yield f"fewer than {samples_needed(95)} samples, no p95: {named}{more}"


def _ranked(ranked: Compared) -> dict[str, Any]:
    places = {
        standing.label: {
            "value": show_value(ranked, standing.value),
            "ratio": format_times(standing.ratio),
            "interval": show_interval(standing),
            "claim": standing.claim,
        }
        for standing in ranked.standings
    }
    return {"name": f"{ranked.subject} {ranked.figure}", "kind": ranked.kind, "places": places}
