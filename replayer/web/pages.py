"""The pages beside Locust's own, and the figures that all of them ask for.

A page is a frame of HTML that a script fills; figures come as JSON. What takes long (past runs,
traces) is read in a thread.
"""

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    jsonify,
    render_template,
    request,
    send_from_directory,
)
from werkzeug.exceptions import HTTPException

from replayer.errors import ReplayerError
from replayer.measure.health import RunWarning
from replayer.run.metrics import PATH, render_metrics
from replayer.run.threads import call_in_thread
from replayer.web import login
from replayer.web.capacity import add_capacities
from replayer.web.choices import describe_choices
from replayer.web.guard import TOKEN
from replayer.web.library import add_comparison, add_library, add_run_changes, add_runs
from replayer.web.live import add_live
from replayer.web.run_control import ActiveRun, RunControl
from replayer.web.start import add_start
from replayer.web.timeline import add_timeline

HERE = Path(__file__).parent
LOOK = frozenset({"palette.css", "report.css", "report.js"})
"""What reports look like, and our pages with them."""
REPORT = HERE.parent / "report" / "templates"
PLACE = "/replayer"


def install(app: Flask, control: RunControl) -> None:
    """Add the pages."""
    blueprint = Blueprint("replayer", __name__, template_folder=str(HERE / "templates"))
    login.views(blueprint, app)
    _add_errors(blueprint)
    _add_state(blueprint, control)
    add_live(blueprint, control)
    add_start(blueprint, control)
    add_runs(blueprint, control)
    add_run_changes(blueprint, control)
    add_comparison(blueprint, control)
    add_library(blueprint, control)
    add_timeline(blueprint, control)
    add_capacities(blueprint, control)
    base = app.blueprints["locust"].url_prefix or ""
    app.register_blueprint(blueprint, url_prefix=f"{base}{PLACE}")
    app.register_blueprint(_metrics(control), url_prefix=base or None)
    app.context_processor(lambda: {"token": current_app.extensions[TOKEN]})


def _metrics(control: RunControl) -> Blueprint:
    blueprint = Blueprint("replayer_metrics", __name__)

    @blueprint.route(PATH)
    def metrics() -> Response:
        text, content_type = render_metrics(control.meter, request.headers.get("Accept", ""))
        return Response(text, content_type=content_type)

    return blueprint


def _add_errors(blueprint: Blueprint) -> None:
    @blueprint.errorhandler(ReplayerError)
    def refuse(error: ReplayerError) -> tuple[str, int]:
        return render_template("replayer/refused.html", error=error), 400

    @blueprint.errorhandler(HTTPException)
    def not_served(error: HTTPException) -> tuple[Response, int]:
        return jsonify({"message": error.name}), error.code or 500


def _add_state(blueprint: Blueprint, control: RunControl) -> None:
    server = secrets.token_urlsafe(9)  # by which a page notices that the program is another one

    @blueprint.route("/assets/<name>")
    def assets(name: str) -> Response:
        return send_from_directory(REPORT if name in LOOK else HERE / "assets", name)

    @blueprint.route("/now")
    def overview() -> Response:
        return jsonify(
            {**describe_now(control), "login": login.is_installed(current_app), "server": server}
        )

    @blueprint.route("/scenarios")
    def scenarios() -> Response:
        found = call_in_thread(describe_choices, control.form.choices)
        return jsonify([asdict(facts) for facts in found])


CACHE_UNKNOWN = RunWarning(
    kind="other",
    message="the client's caches are not changed: new files are likely in memory, and reads may "
    "not reach the mount",
    hint="choose cold or warm for a defined state of the caches",
)


def describe_now(control: RunControl) -> dict[str, Any]:
    """Return the state of the run control, as JSON."""
    active, order, refused = control.active, control.order, control.refused
    run = None if active is None else _describe(active)
    target_warnings = _shown(control.target_warnings) if active is None else []
    search = control.searches.latest
    return {
        "state": control.state,
        "run": run,
        "outlook": target_warnings,
        "ordered": None if order is None else order.name,
        "refused": None if refused is None else {"message": str(refused), "hint": refused.hint},
        "search": search.about if search is not None and control.searches.goes_on else None,
    }


def _describe(active: ActiveRun) -> dict[str, Any]:
    request, tick = active.request, active.status.tick_now
    work = active.status.work_now
    return {
        "id": None if active.folder is None else active.folder.name,
        "scenario": request.workload.plan.name,
        "targets": [target.name for target in request.targets],
        "cache": request.workload.cache,
        "outcome": active.outcome,
        "failure": active.failure,
        "why": active.why,
        "phase": None if tick is None else tick.phase,
        "users": None if tick is None else tick.users,
        "left_s": None if tick is None or tick.left_s is None else max(tick.left_s, 0.0),
        "rate": None if tick is None else tick.ledger.rate,
        "errors": sum(line.errors.total() for line in active.op_totals.lines.values()),
        "work": None if work is None else vars(work),
        "hanging": [{"call": hang.call, "age_s": hang.age_s} for hang in active.status.hanging],
        "warnings": _shown(_warnings(active)),
    }


def _shown(warnings: Sequence[RunWarning]) -> list[dict[str, str | None]]:
    return [{"message": warning.message, "hint": warning.hint} for warning in warnings]


def _warnings(active: ActiveRun) -> list[RunWarning]:
    """Return what is wrong now, or was when the run ended."""
    found = list(active.ended_with if active.run is None else active.run.warnings())
    if active.request.workload.cache == "as-is":
        found.append(CACHE_UNKNOWN)
    return found
