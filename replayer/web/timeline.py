"""The page of a trace's timeline: threads as lanes, calls as blocks, recorded above replayed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from errno import errorcode
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from flask import Blueprint, Response, jsonify, render_template, request

from replayer.errors import ReplayerError
from replayer.measure.record import RunRecord, load_run
from replayer.measure.units import NS_PER_S
from replayer.ops import BY_NAME, UNTIMED
from replayer.run.threads import call_in_thread
from replayer.trace.facts import load_facts
from replayer.trace.shipped import shipped_traces
from replayer.trace.timeline import (
    KINDS,
    NAMES,
    Calls,
    Events,
    Lane,
    Performance,
    find_performances,
    kind_of,
    load_events,
)
from replayer.web.form import whole_number
from replayer.web.library import EVENT_LOG, listed_run
from replayer.web.run_control import RunControl

MOST_LANES = 40  # chosen: as many as a person scrolls through
MOST_COLUMNS = 2000
"""Chosen: no picture is wider."""
MOST_BLOCKS = 200  # chosen: of more, a lane shows which part of each column was spent in calls
MOST_FOUND = 100  # chosen: a list that is read
PER_MILLE = 1000
MOST_NS = 2**62
LATE_S = 0.1  # chosen: a phase is told within that after its users have begun
NO_ERROR = 2**15  # no error of the kernel has this number


@dataclass
class Shown:
    """What a timeline shows.

    Attributes:
        title: Of the page.
        events: Of the trace.
        performances: Replays whose times were kept.
        names: What these are called.
    """

    title: str
    events: Events
    performances: list[Performance]
    names: list[str]
    _replayed: dict[int, Calls] = field(default_factory=dict)

    def calls(self, performance: int) -> Calls | None:
        """Return when a replay made the events; None: there is no such replay."""
        if not 0 <= performance < len(self.performances):
            return None
        found = self._replayed.get(performance)
        if found is None:
            found = self.events.replayed(self.performances[performance])
            self._replayed = {performance: found}  # one is looked at at a time
        return found


@dataclass(frozen=True)
class Window:
    """Which part of a timeline is looked at."""

    from_ns: int
    to_ns: int
    columns: int
    first_lane: int
    performance: int


def add_timeline(blueprint: Blueprint, control: RunControl) -> None:
    """Add the page, the lanes that it draws, and the search for calls."""

    def answer(work: Callable[[Shown], dict[str, Any]]) -> Response:
        sent = request.args.to_dict()
        try:
            return jsonify(call_in_thread(lambda: work(_shown(control, sent))))
        except ReplayerError as error:
            return jsonify({"message": str(error), "hint": error.hint})

    @blueprint.route("/timeline")
    def timeline() -> str:
        sent = request.args.to_dict()
        found = call_in_thread(_shown, control, sent)
        return render_template(
            "replayer/timeline.html",
            title=found.title,
            source="run" if "run" in sent else "trace",
            name=sent.get("run") or sent.get("trace"),
            performances=found.names,
            ops=sorted({NAMES[op] for op in np.unique(found.events.op)} - UNTIMED),
            errors=_errors(found.events),
            kinds=KINDS,
        )

    @blueprint.route("/timeline/lanes")
    def lanes() -> Response:
        window = Window(
            from_ns=_number("from"),
            to_ns=_number("to"),
            columns=min(max(_number("columns"), 1), MOST_COLUMNS),
            first_lane=max(_number("lane"), 0),
            performance=_number("performance"),
        )
        return answer(lambda found: describe_lanes(found, window))

    @blueprint.route("/timeline/calls")
    def calls() -> Response:
        sent, performance = request.args.to_dict(), _number("performance")
        return answer(lambda found: find_calls(found, sent, performance))


def _number(name: str) -> int:
    """Return a number that was sent; 0 if it is none."""
    found: int = request.args.get(name, 0, type=int)
    return found if abs(found) <= MOST_NS else 0


def _shown(control: RunControl, sent: Mapping[str, str]) -> Shown:
    """Return what a request asks to look at.

    Raises:
        ReplayerError: There is no such thing, or a run goes on.
    """
    if control.goes_on or control.searches.goes_on:
        message = "a run is active, and reading a trace would disturb it"
        raise ReplayerError(message, hint="the timeline can be read when it has ended")
    if "run" in sent:
        return _of_run(listed_run(control.form.runs, sent["run"]))
    return _of_trace(sent.get("trace", ""))


def _of_trace(name: str) -> Shown:
    if name not in shipped_traces():
        raise ReplayerError(f"{name}: no such trace among those that come with the program")
    facts = load_facts(name, Path())
    return Shown(name, _load(facts.folder, facts.sha256), [], [])


@lru_cache(maxsize=4)
def _of_run(folder: Path) -> Shown:
    name, record = folder.name, load_run(folder)
    run = record.run
    if record.status == "running":
        raise ReplayerError(f"{name}: this run goes on")
    if run.replay is None or len(run.replay.traces) != 1:
        raise ReplayerError(f"{name}: this run did not replay one trace")
    (trace,) = run.replay.traces
    facts = load_facts(trace.name, Path())
    if facts.sha256 != trace.sha256:
        raise ReplayerError(f"{facts.folder}: is another trace than this run replayed")
    performances = find_performances(folder / EVENT_LOG)
    if not performances:
        message = f"{name}: this run did not keep when each call was made"
        hint = "replay with --check-order, or choose it on the page Traces"
        raise ReplayerError(message, hint=hint)
    events = _load(facts.folder, facts.sha256)
    names = [_name_of_performance(each, record) for each in performances]
    return Shown(f"{trace.name} in {name}", events, performances, names)


def _name_of_performance(performance: Performance, record: RunRecord) -> str:
    """Name the user, and the target and round in which it was when it began."""
    user = f"user {performance.user}, no. {performance.number}"
    if performance.begin_ns is None:
        return f"{user}: no call"
    at_s = performance.begin_ns / NS_PER_S + LATE_S
    begun = {span.start_s: segment for segment, span in record.spans.items() if span.start_s < at_s}
    if not begun:
        return user
    segment = begun[max(begun)]
    return f"{record.run.targets[segment.target].name}, round {segment.round + 1}, {user}"


@lru_cache(maxsize=2)
def _load(folder: Path, _sha256: str) -> Events:
    return load_events(folder)


def _errors(events: Events) -> list[str]:
    found = np.unique(events.result[events.result < 0])
    return sorted(_name_of(int(number)) for number in found)


def _name_of(result: int) -> str:
    return errorcode.get(-result, str(-result))


def describe_lanes(shown: Shown, window: Window) -> dict[str, Any]:
    """Return the lanes of a window, as JSON. A window without length is the whole."""
    recorded, replayed = shown.events.recorded, shown.calls(window.performance)
    end_ns = max(recorded.end_ns, 0 if replayed is None else replayed.end_ns, 1)
    from_ns = min(max(window.from_ns, 0), end_ns)
    to_ns = min(window.to_ns, end_ns) if window.to_ns > from_ns else end_ns
    edges = np.linspace(from_ns, to_ns, window.columns + 1).astype(np.int64)
    threads = shown.events.threads
    chosen = threads[window.first_lane :][:MOST_LANES]
    return {
        "end": end_ns,
        "from": from_ns,
        "to": to_ns,
        "threads": threads,
        "first": window.first_lane,
        "most": MOST_LANES,
        "lanes": [
            {
                "thread": thread,
                "recorded": _describe(recorded, thread, edges),
                "replayed": None if replayed is None else _describe(replayed, thread, edges),
            }
            for thread in chosen
        ],
    }


def _describe(calls: Calls, thread: int, edges: np.ndarray[Any, Any]) -> dict[str, Any]:
    lane = calls.lanes.get(thread)
    if lane is None:
        return {"blocks": []}
    inside = lane.between(int(edges[0]), int(edges[-1]))
    if inside.stop - inside.start <= MOST_BLOCKS:
        return {"blocks": _blocks(calls, lane, inside)}
    spent = np.diff(lane.spent_until(edges), axis=0)
    widths = np.maximum(np.diff(edges), 1)
    share = (PER_MILLE * spent.sum(axis=1) / widths).round().astype(int)
    begun = lane.begun_between(edges)
    return {
        "share": share.tolist(),
        "kind": spent.argmax(axis=1).tolist(),
        "begun": begun.tolist(),
    }


def _blocks(calls: Calls, lane: Lane, inside: slice) -> list[tuple[int, ...]]:
    """Return row, begin, length, kind and whether it failed, of each call."""
    rows = lane.rows[inside]
    columns = (
        rows,
        lane.start_ns[inside],
        lane.end_ns[inside] - lane.start_ns[inside],
        lane.kind[inside],
        calls.result[rows] < 0,
    )
    return [*zip(*(column.astype(int).tolist() for column in columns), strict=True)]


def find_calls(shown: Shown, sent: Mapping[str, str], performance: int) -> dict[str, Any]:
    """Return the calls that were asked for, as JSON: one by its row, or those that fit."""
    events, replayed = shown.events, shown.calls(performance)
    chosen = whole_number(sent.get("row", ""))
    if chosen is not None:
        rows = np.array([chosen] if chosen < len(events.op) else [], np.int64)
    else:
        numbers = {name: number for number, name in errorcode.items()}
        error = numbers.get(sent["error"], NO_ERROR) if sent.get("error") else None
        rows = events.find(sent.get("words", ""), error, sent.get("op") or None)
    return {
        "found": len(rows),
        "calls": [_call(events, replayed, int(row)) for row in rows[:MOST_FOUND]],
    }


def _call(events: Events, replayed: Calls | None, row: int) -> dict[str, Any]:
    result = int(events.result[row])
    return {
        "row": row,
        "thread": int(events.thread[row]),
        "lane": events.threads.index(int(events.thread[row])),
        "op": NAMES[events.op[row]],
        "kind": KINDS.index(kind_of(BY_NAME[NAMES[events.op[row]]])),
        "path": events.path_of(row),
        "result": _name_of(result) if result < 0 else f"{result:,}",
        "recorded": _times(events.recorded, row),
        "replayed": None if replayed is None else _times(replayed, row),
    }


def _times(calls: Calls, row: int) -> tuple[int, int] | None:
    """Return when an event began and how long it took; -1: not known. None: it was not made."""
    if not calls.is_made[row]:
        return None
    return int(calls.start_ns[row]), int(calls.duration_ns[row])
