"""What made the latency of a moment: which ops, files and errors. Pure: a record in, facts out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.nfs_requests import Asked, find_asked
from replayer.analysis.slots import TIMES, Slots
from replayer.measure.hlog import Key
from replayer.measure.mountstats import Requests, added_up
from replayer.measure.record import Event, RunRecord
from replayer.measure.summary import WAITS
from replayer.measure.timeline import Seconds

__all__ = ["Call", "Explanation", "OpShare", "Window", "cut_windows", "explain"]

MOST_WINDOWS = 40
"""Of a target: chosen, a twelfth of an inch of a chart each, and a page of text in all."""
MOST_OPS, MOST_CALLS = 3, 3  # chosen: what a person reads

Window = tuple[float, float]
"""From when to when, in seconds since the engine's begin."""


@dataclass(frozen=True)
class OpShare:
    """What an op took in a window."""

    op: str
    share: float
    """Of the time of all calls in it."""
    count: int
    mean_ns: float
    usual_ns: float
    """The mean of the whole run."""


@dataclass(frozen=True)
class Call:
    """A call that was slow, or hung."""

    op: str
    path: str
    time_ns: float
    """How long it lasted, or had lasted by the end of the window."""
    goes_on: bool = False
    """Whether it had not come back by then."""


@dataclass(frozen=True)
class Explanation:
    """What happened on a target in a window."""

    window: Window
    ops: tuple[OpShare, ...]
    """Those that took most of the time, most first."""
    slowest: tuple[Call, ...]
    """Those that ended in it, longest first, as far as they were kept."""
    hung: tuple[Call, ...]
    errors: Mapping[str, int]
    cpu_wait_share: float
    """How long users waited for a CPU in the seconds in which they waited long, as a share of their
    time in calls and of work outside of them."""
    cpu_wait_s: float
    """How long these seconds are together."""
    stood_still_s: float
    """For how long the client that stood still longest did so as a whole."""
    requests: Requests
    """Of the NFS mounts, in the seconds whose middle lies in it."""


def cut_windows(slots: Slots) -> list[Window]:
    """Return windows of one or more slots of a target that follow each other in a round."""
    step = -(-slots.begins_s.size // MOST_WINDOWS) if slots.begins_s.size else 1
    ends_s = slots.begins_s + slots.lengths_s
    return [
        (float(slots.begins_s[own[0]]), float(ends_s[own[-1]]))
        for number in np.unique(slots.rounds)
        for places in [np.flatnonzero(slots.rounds == number)]
        for at in range(0, places.size, step)
        for own in [places[at : at + step]]
    ]


def explain(record: RunRecord, target: int, windows: Sequence[Window]) -> list[Explanation]:
    """Return what made the latency of a target in each window."""
    parts = {
        key: own
        for key, own in record.seconds.items()
        if key.segment.target == target and key.op not in TIMES | WAITS
    }
    timed = {key: own for key, own in parts.items() if key.is_timed}
    usual = {op: _mean(own) for op, own in _by_op(timed).items()}
    own_events = [event for event in record.events if event.get("target") == target]
    slow, hung = _slow_calls(own_events), _hung_calls(own_events)
    asked = [*find_asked(record, target)]
    return [
        Explanation(
            window,
            tuple(_ops(timed, window, usual)),
            tuple(_slowest(slow, window)),
            tuple(_hung(hung, window)),
            _errors(parts, window),
            *_cpu_waits(record.events, window),
            _stood_still_s(record.events, window),
            _requests(asked, window),
        )
        for window in windows
    ]


def _by_op(parts: Mapping[Key, Seconds]) -> dict[str, list[Seconds]]:
    found: dict[str, list[Seconds]] = {}
    for key, own in parts.items():
        found.setdefault(key.op, []).append(own)
    return found


def _mean(parts: Sequence[Seconds]) -> float:
    counts = sum(float(own.count.sum()) for own in parts)
    return sum(float(own.count @ own.mean_ns) for own in parts) / counts if counts else 0.0


def _inside(own: Seconds, window: Window) -> NDArray[np.bool_]:
    """Return which intervals have their middle in a window."""
    middles = (own.start_s + own.end_s) / 2
    found: NDArray[np.bool_] = (middles >= window[0]) & (middles < window[1])
    return found


def _ops(
    parts: Mapping[Key, Seconds], window: Window, usual: Mapping[str, float]
) -> Iterator[OpShare]:
    times_ns: dict[str, float] = dict.fromkeys(usual, 0.0)
    counts: dict[str, int] = dict.fromkeys(usual, 0)
    for key, own in parts.items():
        inside = _inside(own, window)
        times_ns[key.op] += float(own.count[inside] @ own.mean_ns[inside])
        counts[key.op] += int(own.count[inside].sum())
    whole_ns = sum(times_ns.values())
    for op in sorted(times_ns, key=lambda op: -times_ns[op])[:MOST_OPS]:
        if times_ns[op]:
            mean_ns = times_ns[op] / counts[op]
            yield OpShare(op, times_ns[op] / whole_ns, counts[op], mean_ns, usual[op])


def _errors(parts: Mapping[Key, Seconds], window: Window) -> dict[str, int]:
    found: Counter[str] = Counter()
    for key, own in parts.items():
        if not key.expected:
            found[f"{key.op} {key.outcome}"] += int(own.count[_inside(own, window)].sum())
    return dict(+found)


def _cpu_waits(events: Sequence[Event], window: Window) -> tuple[float, float]:
    """Return the share of time that users waited in bad seconds, and how long those are."""
    waits = [
        (event, length_s)
        for event in events
        if event.get("kind") == "cpu_wait"
        if (length_s := _overlap_s(event, window, is_end=True)) > 0
    ]
    waited_s, worked_s = (
        sum(_number(event, name) for event, _ in waits) for name in ("waited_s", "worked_s")
    )
    return waited_s / worked_s if worked_s > 0 else 0.0, _of_one_client_s(waits)


def _stood_still_s(events: Sequence[Event], window: Window) -> float:
    still = [event for event in events if event.get("kind") == "standstill"]
    return _of_one_client_s((event, _overlap_s(event, window)) for event in still)


def _of_one_client_s(parts: Iterable[tuple[Event, float]]) -> float:
    """Return the longest time of a client: what several had at the same moment is not added up."""
    found_s: dict[object, float] = {}
    for event, length_s in parts:
        client = event.get("client")
        found_s[client] = found_s.get(client, 0.0) + length_s
    return max(found_s.values(), default=0.0)


def _overlap_s(event: Event, window: Window, *, is_end: bool = False) -> float:
    """Return how much of an event lies in a window; its time is its begin, or its end."""
    at_s, length_s = _number(event, "t_s"), _number(event, "length_s")
    begin_s = at_s - length_s if is_end else at_s
    return max(min(begin_s + length_s, window[1]) - max(begin_s, window[0]), 0.0)


def _requests(asked: Sequence[Asked], window: Window) -> Requests:
    """Return what was asked in a window; of a whole phase nobody knows when it was asked."""
    return added_up(
        each.requests
        for each in asked
        if each.length_s and window[0] <= each.end_s - each.length_s / 2 < window[1]
    )


def _slow_calls(events: Sequence[Event]) -> list[tuple[float, Call]]:
    """Return the slow calls that were kept, and when each ended."""
    return [
        (_number(event, "t_s"), call)
        for event in events
        if event.get("kind") == "slow"
        if (call := _call(event, "service_ns")) is not None and call.op not in WAITS
    ]


def _slowest(slow: Sequence[tuple[float, Call]], window: Window) -> list[Call]:
    found = [call for end_s, call in slow if window[0] <= end_s < window[1]]
    return sorted(found, key=lambda call: -call.time_ns)[:MOST_CALLS]


def _hung_calls(events: Sequence[Event]) -> list[tuple[Call, float, float]]:
    """Return calls that hung, and from when to when: told once each hangs, and when no longer."""
    begun: dict[tuple[object, object, object], tuple[Call, float]] = {}
    found: list[tuple[Call, float, float]] = []
    for event in events:
        call, seen_s = _call(event, "age_ns"), _number(event, "t_s")
        if event.get("kind") not in HANGS or call is None:
            continue
        who = (event.get("user"), call.op, call.path)
        begin_s = seen_s - call.time_ns / 1e9
        if event.get("kind") == "stall":
            begun[who] = call, begin_s
        else:
            _, begin_s = begun.pop(who, (call, begin_s))
            found.append((call, begin_s, seen_s))
    return [*found, *((call, begin_s, inf) for call, begin_s in begun.values())]


def _hung(hung: Sequence[tuple[Call, float, float]], window: Window) -> list[Call]:
    found = [
        Call(
            call.op,
            call.path,
            (min(end_s, window[1]) - begin_s) * 1e9,
            goes_on=end_s > window[1],
        )
        for call, begin_s, end_s in hung
        if begin_s < window[1] and end_s >= window[0]
    ]
    return sorted(found, key=lambda call: -call.time_ns)[:MOST_CALLS]


HANGS = frozenset({"stall", "stall_over", "abandoned"})
"""A call was seen to hang; it came back; it never did, and was given up."""


def _call(event: Event, time: str) -> Call | None:
    op, path = event.get("op"), event.get("path")
    return Call(op, str(path or ""), _number(event, time)) if isinstance(op, str) else None


def _number(event: Event, name: str) -> float:
    found = event.get(name)
    return float(found) if isinstance(found, int | float) else -1.0
