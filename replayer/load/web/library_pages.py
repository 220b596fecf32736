"""The pages of past runs and of traces: tables made here, in threads, so that nobody waits."""

from pathlib import Path
from typing import Any

from flask import Blueprint, Response, render_template, request

from replayer.load.threads import call_in_thread
from replayer.load.web.answer import answer_order
from replayer.load.web.desk import Desk
from replayer.load.web.form import REPLAY_CACHES, REPLAY_PACES
from replayer.load.web.library import list_traces
from replayer.load.web.past import PastRun, compare_runs, find_run, list_runs
from replayer.measure import Run, load_run
from replayer.measure.units import format_count, format_rate, format_ratio, format_time_ns
from replayer.report import (
    Document,
    Ranked,
    compose,
    render_csv,
    render_json,
    render_markdown,
    render_table,
)
from replayer.trace import shipped_traces

__all__ = ["add_library", "add_runs"]

FORMS = {
    "json": (render_json, "application/json"),
    "md": (render_markdown, "text/markdown; charset=utf-8"),
    "csv": (render_csv, "text/csv; charset=utf-8"),
}


def add_runs(blueprint: Blueprint, desk: Desk) -> None:
    """Add the list of runs, the report of each, and the comparison of several."""
    folder = desk.form.runs

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
        saved = {"Content-Disposition": f'attachment; filename="replayer-{name}.{form}"'}
        return Response(text, content_type=kind, headers=saved)

    @blueprint.route("/compare")
    def compare() -> str:
        folders = [find_run(folder, name) for name in request.args.getlist("run")]
        found = call_in_thread(compare_runs, folders)
        ranking = [_ranked(each) for each in found.ranking]
        return render_template("replayer/compare.html", found=found, ranking=ranking)


def add_library(blueprint: Blueprint, desk: Desk) -> None:
    """Add the list of traces, and the start of a replay."""

    @blueprint.route("/traces")
    def traces() -> str:
        return render_template(
            "replayer/traces.html",
            entries=call_in_thread(list_traces),
            targets=list(desk.form.words),
            caches=REPLAY_CACHES,
            paces=REPLAY_PACES,
            startable=desk.has_scenario_users,
        )

    @blueprint.route("/replay", methods=["POST"])
    def replay() -> Response:
        traces = list(shipped_traces())
        return answer_order(desk, lambda sent: desk.form.read_replay(sent, traces))


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


def _figures(run: Run) -> list[str]:
    """Return the p95 and the rate of each transaction of the first target, in a line each."""
    if run.summary is None:
        return []
    return [
        f"{found.name}: p95 {format_time_ns(found.latency.p95_ns)}, "
        f"{format_rate(found.throughput_per_s or 0)}"
        for found in run.summary.targets[0].overall.transactions
        if found.latency.p95_ns is not None
    ]


def _ranked(ranked: Ranked) -> dict[str, Any]:
    write = format_time_ns if ranked.unit == "ns" else format_rate
    places = {
        place.target: {
            "value": write(place.value),
            "ratio": f"\N{MULTIPLICATION SIGN}{format_ratio(place.ratio)}",
            "best": number == 0,
            "claim": "best"
            if number == 0
            else "differs"
            if place.differs
            else "not shown to differ",
        }
        for number, place in enumerate(ranked.places)
    }
    return {
        "subject": ranked.subject,
        "kind": ranked.kind,
        "figure": ranked.figure,
        "places": places,
    }
