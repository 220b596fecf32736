"""The page of searches for capacities: their start, how they stand, and what each has found."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, jsonify, render_template, send_from_directory

from replayer.errors import ReplayerError
from replayer.run.threads import call_in_thread
from replayer.web.form import SEARCH_LOADS, SEARCH_PRECISIONS
from replayer.web.run_control import RunControl, answer_order
from replayer.web.searches import PAGE, list_searches, search_names


def add_capacities(blueprint: Blueprint, control: RunControl) -> None:
    """Add the page of searches, their start and end, and what each has found."""
    searches = control.searches

    @blueprint.route("/capacities")
    def capacities() -> str:
        form = control.form
        return render_template(
            "replayer/capacities.html",
            startable=control.can_search,
            scenarios=[choice.name for choice in form.choices if choice.source is not None],
            targets=list(form.words),
            loads=SEARCH_LOADS,
            precisions=SEARCH_PRECISIONS,
            folder=searches.folder.absolute(),
            rows=[_row(*each) for each in call_in_thread(list_searches, searches.folder)],
        )

    @blueprint.route("/capacities/now")
    def search_now() -> Response:
        latest = searches.latest
        return jsonify(None if latest is None else call_in_thread(latest.describe))

    @blueprint.route("/capacities", methods=["POST"])
    def search() -> Response:
        return answer_order(control, control.start_search)

    @blueprint.route("/baseline", methods=["POST"])
    def measure_baseline() -> Response:
        return answer_order(control, control.start_baseline)

    @blueprint.route("/capacities/stop", methods=["POST"])
    def end_search() -> Response:
        searches.stop()
        return jsonify({"success": True})

    @blueprint.route("/capacities/<name>/report.html")
    def capacity_page(name: str) -> Response:
        if name not in call_in_thread(search_names, searches.folder):
            raise ReplayerError(f"{name}: no such search in {searches.folder}")
        return send_from_directory((searches.folder / name).absolute(), PAGE)


def _row(name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "scenario": str(document.get("scenario", "")),
        "goals": [str(goal) for goal in document.get("goals", ())],
        "answers": [str(line) for line in document.get("answers", ())],
    }
