"""The pages of past runs and of traces: read and rendered in threads, so that nobody waits."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from flask import Blueprint, Response, jsonify, render_template, request, send_file

from replayer.errors import ReplayerError
from replayer.measure.history import (
    PastRun,
    forget_name,
    keep_ended_run,
    list_runs,
    names_by_run,
    run_names,
)
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import Run, is_alive, is_elsewhere
from replayer.measure.summary import TransactionSummary, samples_needed
from replayer.measure.units import (
    format_bytes,
    format_count,
    format_rate,
    format_time_ns,
)
from replayer.report.composition import compose
from replayer.report.document import Document
from replayer.report.forms import FORMS
from replayer.report.html import render_html, render_part
from replayer.report.plan_changes import plan_changes, same_work
from replayer.report.replay import format_counts
from replayer.report.style import PLAIN
from replayer.run.threads import call_in_thread
from replayer.trace.shipped import shipped_traces
from replayer.web.form import REPLAY_CACHES, REPLAY_PACES, ForeignError
from replayer.web.run_control import RunControl, answer_order, with_hint

TRACE_JSON = "trace.json"
MOST_TRACES = 200
"""Chosen: more than fit on a page that is read."""
MOST_NAMED_TRACES = 8
"""Chosen: ops and requests that say what a trace is like."""


@dataclass(frozen=True)
class LibraryEntry:
    """One trace, in words."""

    name: str
    """Such as ``wordpress/front-warm``."""
    note: str
    """What was recorded, and how."""
    facts: tuple[tuple[str, str], ...]
    """Label and text of each thing to know."""
    ops: tuple[tuple[str, int, float], ...]
    """The op mix: name, count and share of the commonest one, of one at most."""


def list_traces() -> list[LibraryEntry]:
    """Return every trace that comes with the program, by name; damaged ones are left out."""
    found = islice(shipped_traces().items(), MOST_TRACES)
    entries = (_read(folder / TRACE_JSON, name) for name, folder in found)
    return [entry for entry in entries if entry is not None]


def _read(path: Path, name: str) -> LibraryEntry | None:
    try:
        trace = json.loads(path.read_bytes())
        return LibraryEntry(
            name, trace["origin"]["note"], _facts(trace), _ops(trace["counts"]["ops"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _facts(trace: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    counts, tree = trace["counts"], trace["tree"]
    return (
        (
            "events",
            (
                f"{format_count(counts['events'])} of {format_count(counts['threads'])} "
                f"thread{'s' * (counts['threads'] != 1)} over {format_time_ns(counts['span_ns'])}"
            ),
        ),
        (
            "data",
            (
                f"{format_bytes(counts['bytes_read'])} read, "
                f"{format_bytes(counts['bytes_written'])} written"
            ),
        ),
        (
            "tree before",
            (
                f"{format_count(tree['files'])} files, {format_count(tree['directories'])} "
                f"directories, {format_bytes(tree['bytes'])}"
            ),
        ),
        ("errors", format_counts(counts["errors"]) or "none"),
        ("requests", _requests(trace)),
        ("blind spots", _blind(trace)),
    )


def _requests(trace: Mapping[str, Any]) -> str:
    found = sorted(trace["requests"], key=lambda item: -int(item["count"]))
    shown = [
        f"{format_count(item['count'])} x {item['label']}" for item in found[:MOST_NAMED_TRACES]
    ]
    more = (
        f", and {len(found) - MOST_NAMED_TRACES} more labels"
        if len(found) > MOST_NAMED_TRACES
        else ""
    )
    return (", ".join(shown) or "none") + more


def _blind(trace: Mapping[str, Any]) -> str:
    unseen = format_counts(trace["blind_spots"])
    lost = format_counts(trace["counts"]["calls_not_representable"])
    parts = [unseen or "none seen", f"not replayable: {lost}" if lost else ""]
    return "; ".join(part for part in parts if part)


def _ops(named: Mapping[str, int]) -> tuple[tuple[str, int, float], ...]:
    ordered = sorted(named.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMED_TRACES]
    most = max((count for _, count in ordered), default=1)
    return tuple((name, count, count / most) for name, count in ordered)


MOST_COMPARED = 8
"""Chosen: columns that a person can follow."""


def listed_run(folder: Path, name: str) -> Path:
    """Return the folder of a run that is listed.

    Raises:
        ReplayerError: None of that name is.
    """
    if name in run_names(folder):
        return folder / name
    raise ReplayerError(f"{name}: no such run in {folder}")


def render_comparison(folders: Sequence[Path]) -> str:
    """Render the comparison of several runs as a page of its own.

    Raises:
        ReplayerError: Too few or too many, or one cannot be read.
    """
    records = _records(folders)
    return render_html(records, _plans(records))


def _records(folders: Sequence[Path]) -> list[RunRecord]:
    if not 2 <= len(folders) <= MOST_COMPARED:  # noqa: PLR2004 - one has nothing to compare with
        raise ReplayerError(f"must compare 2 to {MOST_COMPARED} runs, got {len(folders)}")
    return [load_run(folder) for folder in folders]


def _plans(records: Sequence[RunRecord]) -> Literal["same plan", "different plans"]:
    alike = all(same_work(records[0], other) for other in records[1:])
    return "same plan" if alike else "different plans"


def _other_work(records: Sequence[RunRecord]) -> Iterator[str]:
    """Say which runs did other work than the first."""
    first = records[0]
    for other in records[1:]:
        if not same_work(first, other):
            yield (
                f"{first.folder.name} and {other.folder.name} did different work: they differ in "
                f"{plan_changes(first, other)}. Only equal names are compared"
            )


DOWNLOADS = {form.suffix: form for form in FORMS.values()}
"""The forms of a report by the suffix of the file."""

EVENT_LOG = "events"
"""Where a run keeps when each call of a replay was made, unless it was told another folder."""
MOST_NAMED = 3  # chosen: a line of a table; the report has them all


def add_runs(blueprint: Blueprint, control: RunControl) -> None:
    """Add the list of runs, and the report of each in every form."""
    folder = control.form.runs

    @blueprint.route("/runs")
    def runs() -> str:
        found, names = call_in_thread(list_runs, folder), call_in_thread(names_by_run, folder)
        rows = [
            {**_row(past), "names": names.get((folder / past.name).resolve(), ())} for past in found
        ]
        return render_template("replayer/runs.html", rows=rows, folder=folder.absolute())

    @blueprint.route("/runs/<name>")
    def run(name: str) -> str:
        record = call_in_thread(load_run, listed_run(folder, name))
        report = call_in_thread(render_part, [record])
        return render_template(
            "replayer/run.html",
            name=name,
            scenario=record.run.plan.name,
            report=report,
            has_timeline=(record.folder / EVENT_LOG).is_dir(),
        )

    @blueprint.route("/runs/<name>/report.<form>")
    def report(name: str, form: str) -> Response:
        found = DOWNLOADS.get(form)
        if found is None:
            return Response("no such format", status=404)
        text = found.render([call_in_thread(_document, folder, name)], PLAIN)
        return send_file(
            BytesIO(text.encode()),
            mimetype=found.media_type,
            as_attachment=True,
            download_name=f"replayer-{_in_a_header(name)}.{form}",
        )

    @blueprint.route("/runs/<name>/report.html")
    def page(name: str) -> str:
        record = call_in_thread(load_run, listed_run(folder, name))
        return call_in_thread(render_html, [record])


def add_run_changes(blueprint: Blueprint, control: RunControl) -> None:
    """Add the removal of runs, and their names."""
    folder = control.form.runs

    def answer(change: Callable[[], object]) -> Response:
        try:
            call_in_thread(change)
        except ReplayerError as error:
            return jsonify({"success": False, "message": with_hint(error)})
        return jsonify({"success": True})

    @blueprint.route("/remove", methods=["POST"])
    def remove_runs() -> Response:
        chosen = request.form.getlist("run")
        return answer(lambda: _remove(folder, chosen))

    @blueprint.route("/keep", methods=["POST"])
    def keep_run() -> Response:
        name, run = (request.form.get(field, "") for field in ("name", "run"))
        return answer(lambda: keep_ended_run(name, listed_run(folder, run), folder))

    @blueprint.route("/forget", methods=["POST"])
    def forget_run() -> Response:
        name = request.form.get("name", "")
        return answer(lambda: forget_name(name, folder))


def _remove(folder: Path, names: Sequence[str]) -> None:
    """Remove run folders for good. All are looked at before one is removed.

    Raises:
        ReplayerError: One is not listed (links are not), is written by a process that lives, also
            in another container, or is kept under a name; or its files cannot be removed.
    """
    kept = names_by_run(folder)
    paths = [listed_run(folder, name) for name in dict.fromkeys(names)]
    written = {past.name for past in list_runs(folder) if _is_written(past.run)}
    for path in paths:
        if path.name in written:
            raise ReplayerError(f"{path.name}: this run goes on")
        if path.resolve() in kept:
            raise ReplayerError(f"{path.name}: is kept as {kept[path.resolve()][0]}")
    for path in paths:
        try:
            shutil.rmtree(path)
        except OSError as error:
            message = f"{path}: cannot be removed: {error.strerror or error}"
            raise ReplayerError(message) from error


def _is_written(run: Run) -> bool:
    return run.status == "running" and (is_alive(run.process) or is_elsewhere(run.process))


def _in_a_header(name: str) -> str:
    """Return a folder's name without line ends and what else no header can hold."""
    return "".join(letter if letter.isprintable() else "_" for letter in name)


def add_comparison(blueprint: Blueprint, control: RunControl) -> None:
    """Add the comparison of several runs."""
    folder = control.form.runs

    def chosen() -> list[Path]:
        return [listed_run(folder, name) for name in request.args.getlist("run")]

    @blueprint.route("/compare")
    def compare() -> str:
        records = call_in_thread(_records, chosen())
        return render_template(
            "replayer/compare.html",
            notes=[*_other_work(records)],
            report=call_in_thread(render_part, records, _plans(records)),
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
            can_keep_times=control.has_targets,
        )

    @blueprint.route("/replay", methods=["POST"])
    def replay() -> Response:
        traces = list(shipped_traces())

        def start(sent: Mapping[str, Sequence[str]]) -> None:
            settings = control.form.read_replay(sent, traces)
            if "order" in sent and not control.has_targets:
                raise ForeignError("order: workers do not keep when each call was made")
            control.start(settings)

        return answer_order(control, start)


def _document(folder: Path, name: str) -> Document:
    return compose(load_run(listed_run(folder, name)))


def _row(past: PastRun) -> dict[str, Any]:
    run = past.run
    return {
        "name": past.name,
        "began": run.began.replace("T", " ").removesuffix("Z"),
        "scenario": run.plan.name,
        "targets": ", ".join(f"{each.name} ({each.mounts[0].filesystem})" for each in run.targets),
        "users": format_count(run.load.users),
        "cache": run.cache.asked,
        "outcome": run.verdict or run.status,
        "errors": _errors(run),
        "figures": _figures(run),
    }


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
