"""What a run's replays are and what came of them, in the form that run.json has.

Before the run from its plan, afterwards from the engine's counts; the first divergence of each
target is explained from the trace. Nothing is judged here.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replayer._native import Engine
from replayer._native import Plan as EnginePlan
from replayer.errors import ReplayerError
from replayer.measure.replay import (
    Divergence,
    OrderFacts,
    PastEvent,
    ReplayedTarget,
    ReplayedTrace,
    ReplayedTransaction,
    ReplayFacts,
    ReplayResults,
    counted,
)
from replayer.measure.units import format_time_ns
from replayer.ops import names_where
from replayer.plan.document import Plan, steps_of
from replayer.run.options import ReplaySettings
from replayer.trace.errors import TraceError
from replayer.trace.facts import TraceFacts
from replayer.trace.reading import check_order, count_trace, load_history

AS_RECORDED = 100
MOST_PAST = 8
"""Chosen: events that explain one, and fit on a screen."""


def load_plan(plan: Plan) -> EnginePlan:
    """Have the engine read a plan and the traces that it replays, every event of them.

    Raises:
        ReplayerError: A trace cannot be replayed.
    """
    try:
        made = EnginePlan(plan.document(), [str(facts.folder) for facts in plan.traces])
        _ = made.replay_lanes  # its events are read now, not when the run has begun
    except ValueError as error:
        if not plan.traces:
            raise  # plans of scenarios are ours: it is a bug
        message, hint = (*map(str, error.args), "")[:2]
        raise ReplayerError(message, hint=hint) from error
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise ReplayerError(message, hint="the trace cannot be read") from error
    return made


def make_event_log(settings: ReplaySettings | None, run_folder: Path) -> str | None:
    """Make the folder for the times of all events; None when nobody asked for them.

    Raises:
        ReplayerError: It cannot be made, or holds something already.
    """
    if settings is None or not (settings.check_order or settings.event_log):
        return None
    folder = (settings.event_log or run_folder / "events").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        inside = next(folder.iterdir(), None)
    except OSError as error:
        message = f"{folder}: cannot hold the event log: {error.strerror}"
        raise ReplayerError(message, hint="choose another folder for --event-log") from error
    if inside is not None:
        message = f"{folder}: an event log needs an empty folder, this one has {inside.name}"
        raise ReplayerError(message, hint="choose another folder for --event-log")
    return str(folder)


def describe_replay(plan: Plan) -> ReplayFacts | None:
    """Return what a plan replays; None when it replays nothing."""
    if not plan.traces:
        return None
    return ReplayFacts(
        traces=tuple(
            ReplayedTrace.made_of(vars(facts), blind_spots=counted(facts.blind_spots))
            for facts in plan.traces
        ),
        transactions=tuple(
            _transaction(transaction["name"], step, plan.traces[step["trace"]])
            for transaction in plan.body["transactions"]
            for step in steps_of(transaction["steps"], "replay")
        ),
    )


def _transaction(name: str, step: Mapping[str, Any], facts: TraceFacts) -> ReplayedTransaction:
    speed = step["speed_percent"] / AS_RECORDED
    pauses = count_trace(facts.folder, step["request"]).pauses
    has_pauses = step["pace"] != "asap" and facts.pauses_percent is None
    made_ns = pauses.recorder_ns if has_pauses else None
    return ReplayedTransaction(
        name=name,
        trace=facts.name,
        request=step["request"],
        pace=step["pace"],
        speed=speed,
        pauses_ns=round(pauses.pauses_ns / speed) if has_pauses else None,
        recorder_ns=None if made_ns is None else round(made_ns / speed),
    )


def read_results(engine: Engine, plan: Plan) -> ReplayResults:
    """Return how far the replays agreed with their traces."""
    found = json.loads(engine.divergences())
    explained: set[int] = set()
    examples = []
    for each in found["examples"]:
        first = each["target"] not in explained
        explained.add(each["target"])
        examples.append(_divergence(each, plan, first=first))
    return ReplayResults.made_of(
        found,
        omitted=counted(found["omitted"]),
        allowed=counted(found["allowed"]),
        examples=tuple(examples),
        targets=tuple(
            ReplayedTarget.made_of(each, index=each["target"]) for each in found["targets"]
        ),
    )


def read_order(plan: Plan, log: Path) -> OrderFacts:
    """Hold the event log of a run against the order of its trace.

    Raises:
        TraceError: The log or the trace cannot be read.
    """
    found = check_order(plan.traces[0].folder, log)
    first = found["first"]
    return OrderFacts.made_of(found, first=None if first is None else _overtaking(first))


def _overtaking(first: Mapping[str, Any]) -> str:
    early_ns = first["end_ns"] - first["start_ns"]
    return (
        f"row {first['event']} began {format_time_ns(early_ns)} before row {first['waits_for']} "
        f"had ended (user {first['user']}, performance {first['performance']})"
    )


def _divergence(each: Mapping[str, Any], plan: Plan, *, first: bool) -> Divergence:
    """Return a divergence; the first of its target with what led to it."""
    facts = plan.traces[each["trace"]]
    bare = Divergence.made_of(each, trace=facts.name)
    history = _history(facts, bare.row) if first else None
    hint = likely_cause(bare, Circumstances(plan.users, _has_requests(plan, each["trace"])))
    return bare.model_copy(update={"history": history, "hint": hint})


def _has_requests(plan: Plan, trace: int) -> bool:
    replays = plan.steps("replay")
    return any(step["trace"] == trace and step["request"] is not None for step in replays)


def _history(facts: TraceFacts, row: int) -> tuple[PastEvent, ...]:
    try:
        found = load_history(facts.folder, row, MOST_PAST)
    except TraceError:
        return ()  # the trace is gone meanwhile: what is known already is shown without it
    return tuple(
        PastEvent.made_of(each, result=each["error"] or str(each["result"] or "ok"))
        for each in found
    )


UNSUPPORTED = frozenset({"EOPNOTSUPP", "ENOTSUP", "ENOSYS", "ENOTTY", "EINVAL", "EXDEV"})
DENIED = frozenset({"EACCES", "EPERM"})
BROKEN = frozenset({"ESTALE", "EIO", "ENOTCONN", "EHOSTDOWN", "ETIMEDOUT"})
NAMES = frozenset({"ENOENT", "EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR"})
LOCKS = frozenset({"lock", "flock"})
LENGTHS = names_where(lambda op: "length" in op.flags)


_OWN = re.compile(r"~\d+(\.\d+)?(/|$)")


@dataclass(frozen=True)
class Circumstances:
    """What went on beside an event."""

    users: int
    requests: bool
    """Whether requests of the trace were replayed apart from each other."""


@dataclass(frozen=True)
class _Cause:
    applies: Callable[[Divergence, Circumstances], bool]
    says: str


def likely_cause(event: Divergence, beside: Circumstances) -> str:
    """Return what most likely made an event come out otherwise; empty if nothing is known."""
    return next((cause.says for cause in _CAUSES if cause.applies(event, beside)), "")


def _is_of_names(event: Divergence) -> bool:
    return bool({event.got, event.recorded} & NAMES)


def _is_shared(event: Divergence, beside: Circumstances) -> bool:
    return beside.users > 1 and _OWN.search(event.path) is None


def _is_shared_name(event: Divergence, beside: Circumstances) -> bool:
    return _is_shared(event, beside) and _is_of_names(event)


def _is_shared_lock(event: Divergence, beside: Circumstances) -> bool:
    return _is_shared(event, beside) and event.op in LOCKS and event.got == "EAGAIN"


_CAUSES = (
    _Cause(
        lambda event, _: event.got in DENIED and event.recorded not in DENIED,
        "this process has no permission for it: replay as root if the trace was recorded as root, "
        "or check the options of the mount and its export (root_squash)",
    ),
    _Cause(
        lambda event, _: event.recorded in DENIED and event.got == "ok",
        "the recorded program had no permission for it; root, or the owner of the files, has",
    ),
    _Cause(
        lambda event, _: event.got in {"ENOSPC", "EDQUOT"},
        "the target or a quota is full",
    ),
    _Cause(
        lambda event, _: event.got in {"EMFILE", "ENFILE"},
        "this process has too many open files: raise its limit (ulimit -n), or use fewer users",
    ),
    _Cause(
        lambda event, _: event.got in BROKEN,
        "the mount or its server failed; see its log",
    ),
    _Cause(
        lambda event, _: event.got in UNSUPPORTED and event.recorded not in UNSUPPORTED,
        "the target's file system does not support this call or its flags",
    ),
    _Cause(
        lambda event, _: event.got == "EBADF",
        "the file was not open, because an earlier open had another result: see the divergences "
        "before it",
    ),
    _Cause(
        lambda event, _: event.got == "ENAMETOOLONG",
        "the name is too long here: private files of a user get a suffix, such as ~3",
    ),
    _Cause(
        lambda event, beside: _is_shared_name(event, beside) and not beside.requests,
        "several users share this name, but one program changed it in the recording; with -u 1 it "
        "should match: each pass then starts with the original tree",
    ),
    _Cause(
        _is_shared_name,
        "several users share this name, but one program changed it in the recording, and requests "
        "are replayed independently",
    ),
    _Cause(
        _is_shared_lock,
        "another user locked this shared file",
    ),
    _Cause(
        lambda event, beside: beside.requests and _is_of_names(event),
        "in the recording, another request changed this name during this one; requests are "
        "replayed independently",
    ),
    _Cause(
        lambda event, _: {event.got, event.recorded} <= NAMES | {"ok"} and event.got != "ok",
        "the tree differs from the recorded one: an earlier event had another result, an untraced "
        "program changed it, or the target treats names differently (upper and lower case)",
    ),
    _Cause(
        lambda event, _: event.got in {"less", "more"} and event.op in LENGTHS,
        "a file or directory differs in size: another user changed it, or an untraced program did "
        "during the recording",
    ),
)
