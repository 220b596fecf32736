"""The pages beside Locust's own, and the figures that all of them ask for.

A page is a frame of HTML that a script fills; figures come as JSON. What takes long (past runs,
traces) is read in a thread.
"""

import secrets
from dataclasses import asdict
from pathlib import Path

from flask import (
    Blueprint,
    Response,
    current_app,
    jsonify,
    render_template,
    request,
    send_from_directory,
)
from locust.web import WebUI
from werkzeug.exceptions import HTTPException

from replayer.errors import ReplayerError
from replayer.run.metrics import PATH, render_metrics
from replayer.run.threads import call_in_thread
from replayer.web import login
from replayer.web.charts import describe_series, parse_look
from replayer.web.choices import describe_choices
from replayer.web.guard import TOKEN
from replayer.web.library_pages import add_comparison, add_library, add_runs
from replayer.web.overview import describe_now
from replayer.web.run_control import RunControl

__all__ = ["install"]

HERE = Path(__file__).parent
PLACE = "/replayer"


def install(web_ui: WebUI, control: RunControl) -> None:
    """Add the pages."""
    app = web_ui.app
    assert app is not None  # noqa: S101 - Locust makes it in its constructor
    blueprint = Blueprint("replayer", __name__, template_folder=str(HERE / "templates"))
    login.views(blueprint, app)
    _add_errors(blueprint)
    _add_live(blueprint, web_ui, control)
    add_runs(blueprint, control)
    add_comparison(blueprint, control)
    add_library(blueprint, control)
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


def _add_live(blueprint: Blueprint, web_ui: WebUI, control: RunControl) -> None:
    server = secrets.token_urlsafe(9)  # by which a page notices that the program is another one

    @blueprint.route("/assets/<name>")
    def assets(name: str) -> Response:
        return send_from_directory(HERE / "assets", name)

    @blueprint.route("/now")
    def overview() -> Response:
        return jsonify({**describe_now(control), "login": web_ui.web_login, "server": server})

    @blueprint.route("/scenarios")
    def scenarios() -> Response:
        found = call_in_thread(describe_choices, control.form.choices)
        return jsonify([asdict(facts) for facts in found])

    @blueprint.route("/series")
    def series() -> Response:
        return jsonify(describe_series(control.active, parse_look(request.args)))

    @blueprint.route("/latency")
    def latency() -> str:
        return render_template("replayer/latency.html", page="latency")
