"""The live page: the race of the targets, charts over time, and what made a moment slow."""

import math
from typing import Any

from flask import Blueprint, Response, jsonify, render_template, request

from replayer.run.threads import call_in_thread
from replayer.web.charts import describe_series, parse_look
from replayer.web.race import describe_lanes, describe_looks, explain_moment
from replayer.web.run_control import ActiveRun, RunControl


def add_live(blueprint: Blueprint, control: RunControl) -> None:
    """Add the page, and the figures that it asks for each second."""

    @blueprint.route("/live")
    def live() -> str:
        return render_template("replayer/live.html")

    @blueprint.route("/series")
    def series() -> Response:
        return jsonify(describe_series(control.active, parse_look(request.args)))

    @blueprint.route("/race")
    def race() -> Response:
        return jsonify(_describe_race(control.active, parse_look(request.args).after))

    @blueprint.route("/explain")
    def explain() -> Response:
        folder = None if control.active is None else control.active.folder
        if folder is None:
            return jsonify({"title": "", "lines": []})
        target, begin_s, end_s = parse_look(request.args).target, *map(_seconds, ("begin", "end"))
        return jsonify(call_in_thread(explain_moment, folder, target, begin_s, end_s))


def _describe_race(active: ActiveRun | None, after: int) -> dict[str, Any]:
    if active is None:
        return {"run": None}
    if active.folder is not None:
        active.race.look(active.folder, is_over=active.outcome is not None)
    targets = active.request.targets
    return {
        "run": id(active),  # changes with each run, also before it has a folder
        "outcome": active.outcome,
        "is_over": active.race.is_over,
        "targets": [target.name for target in targets],
        **describe_lanes(active.series, active.op_totals, len(targets), after),
        **describe_looks(active.race),
    }


def _seconds(name: str) -> float:
    """Return a time that was sent; 0 if it is none."""
    found: float = request.args.get(name, 0.0, type=float)
    return found if math.isfinite(found) else 0.0
