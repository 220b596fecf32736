"""From a trace to a plan: one transaction for all of it, or one for each kind of request.

Pure: the same facts and options give the same bytes. What is written besides (scenarios that name
traces) is compiled next door.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from replayer.errors import ReplayerError
from replayer.plan.compile import POOL_BYTES
from replayer.plan.document import FORMAT, Plan
from replayer.plan.scope import exponential_table
from replayer.plan.traces import Traces, plain_name, plain_names, replay_step
from replayer.scenario.document import nearest_hint
from replayer.scenario.model import wrong_users
from replayer.trace.facts import TraceFacts

Pace = Literal["asap", "closed", "timed", "open"]

NANOSECONDS = 1_000_000_000
MAX_WEIGHT = 1_000_000  # chosen: beyond any count that a person types
SPEEDS = (0.01, 10_000.0)
"""What ``speed_percent`` of plan format 1 can hold."""


@dataclass(frozen=True)
class ReplayOptions:
    """How a trace is to be replayed."""

    pace: Pace = "closed"
    """How events, and with ``open`` requests, follow each other."""
    speed: float | None = None
    """1 is as recorded, 2 twice as fast; None: nothing was said."""
    rate: float | None = None
    """Requests that arrive a second (``open`` only); None: as recorded."""
    loops: int | None = None
    """How often each user does all of it; None: once, or until the time is over."""
    requests: Mapping[str, int] | None = None
    """Weights by label; None: the whole trace."""
    users: int | None = None
    """None: one; with ``open`` as many as threads were recorded."""
    seed: int = 1
    """What every random draw comes from."""
    duration_ns: int | None = None
    """Measured time of a segment, or None."""


def compile_replay(trace: TraceFacts, options: ReplayOptions) -> Plan:
    """Compile the replay of a trace.

    Raises:
        ReplayerError: The options exclude each other, or the trace has nothing to replay.
    """
    _check(trace, options)
    traces = Traces()
    tables: list[list[int]] = []
    number = traces.add(trace)
    pace: dict[str, Any] = {"kind": "closed", "think": {"const": 0}}
    if options.pace == "open":
        tables.append(exponential_table(NANOSECONDS / _rate(trace, options)))
        pace = {"kind": "arrivals", "gap": {"table": 0}}
    events_pace = "closed" if options.pace == "open" else options.pace
    speed = 1.0 if options.speed is None else options.speed
    body = {
        "format": FORMAT,
        "name": plain_name(trace.name, "trace"),
        "seed": options.seed,
        "users": _users(trace, options),
        "written": "random",
        "pool_bytes": POOL_BYTES,
        "tables": tables,
        "datasets": [],
        "traces": traces.rows,
        "pickers": [],
        "transactions": [
            {"name": name, "steps": [replay_step(number, label, events_pace, speed)]}
            for name, label in _named(trace, options)
        ],
        "mix": [1] if options.requests is None else list(options.requests.values()),
        "pace": pace,
        "stop": _stop(trace, options),
        "warm_up_ns": 0,
    }
    return Plan(body, tuple(traces.facts))


def choose_requests(trace: TraceFacts, words: Sequence[str]) -> dict[str, int]:
    """Read requests as the command line names them: ``LABEL`` or ``LABEL=WEIGHT`` each.

    A label may be written as it is, or as the name that its transaction has. Without words all
    labels are chosen. A weight that is left out is the number of times it was recorded.

    Raises:
        ReplayerError: The trace has no such request, or a weight is none.
    """
    if not trace.requests:
        message = f"{trace.name}: the trace has no requests: it has no accepted connection"
        raise ReplayerError(
            message, hint="leave --requests out, or capture the trace with requests"
        )
    if not words:
        return dict(trace.requests)
    chosen: dict[str, int] = {}
    for word in words:
        label, weight = _read_request(trace, word)
        chosen[label] = weight
    if not any(chosen.values()):
        raise ReplayerError("--requests: at least one weight must be more than 0")
    return chosen


def _read_request(trace: TraceFacts, word: str) -> tuple[str, int]:
    names = {name: label for label, name in plain_names(trace.requests, "root").items()}
    known = {**names, **{label: label for label in trace.requests}}
    if word in known:
        return known[word], trace.requests[known[word]]
    label, equals, weight = word.rpartition("=")
    if equals and label in known:
        if not weight.isdecimal() or int(weight) > MAX_WEIGHT:
            message = f"--requests {word}: a weight must be a whole number from 0 to {MAX_WEIGHT}"
            raise ReplayerError(message, hint=f"for example {label}=3")
        return known[label], int(weight)
    message = f"--requests: {trace.name} has no request {label or word!r}"
    raise ReplayerError(message, hint=nearest_hint(label or word, known, kind="requests"))


def _check(trace: TraceFacts, options: ReplayOptions) -> None:
    for wrong, message, hint in _mistakes(trace, options):
        if wrong:
            raise ReplayerError(message, hint=hint)


def _mistakes(trace: TraceFacts, options: ReplayOptions) -> list[tuple[bool, str, str]]:
    """Return everything that may be wrong: whether it is, the message and the hint."""
    low, high = SPEEDS
    speed, pace = options.speed, options.pace
    return [
        (
            not trace.events,
            f"{trace.name}: the trace holds no events",
            "show it with: replayer show",
        ),
        (
            pace == "open" and options.requests is None,
            "--pace open needs requests that arrive",
            "add --requests for all recorded requests, or --requests LABEL…",
        ),
        (
            pace == "timed" and options.requests is not None,
            "--pace timed plays the whole trace by its own clock and excludes --requests",
            "use --pace closed or open with requests",
        ),
        (
            options.rate is not None and pace != "open",
            f"--rate sets the arrivals of --pace open, but the pace is {pace}",
            "add --pace open --requests",
        ),
        (
            speed is not None and pace == "asap",
            "--speed changes gaps, but --pace asap has no gaps",
            "leave --speed out",
        ),
        (
            speed is not None and not low <= speed <= high,
            f"--speed must be from {low:g} to {high:g}, got {speed}",
            "1 is as recorded, 2 twice as fast",
        ),
        (
            options.users is not None and wrong_users(options.users) is not None,
            f"-u {wrong_users(options.users or 0)}",
            "",
        ),
        (
            wrong_users(_users(trace, options)) is not None,
            (
                f"{trace.name}: one user for each of its threads: "
                f"{wrong_users(_users(trace, options))}"
            ),
            "use -u to set fewer users",
        ),
    ]


def _named(trace: TraceFacts, options: ReplayOptions) -> list[tuple[str, str | None]]:
    """Return the transactions: their names, and the request that each replays."""
    if options.requests is None:
        return [(plain_name(trace.folder.resolve().name, "trace"), None)]
    names = plain_names(trace.requests, "root")
    return [(names[label], label) for label in options.requests]


def _users(trace: TraceFacts, options: ReplayOptions) -> int:
    if options.users is not None:
        return options.users
    return max(trace.threads, 1) if options.pace == "open" else 1


def _stop(trace: TraceFacts, options: ReplayOptions) -> dict[str, int | None]:
    """Return what ends a segment: loops if they are given or nothing else is, and the time."""
    loops = options.loops
    if loops is None and options.duration_ns is None:
        loops = 1
    once = _chosen_count(trace, options) if options.requests is not None else 1
    transactions = None if loops is None else loops * once
    return {"duration_ns": options.duration_ns, "transactions": transactions}


def _chosen_count(trace: TraceFacts, options: ReplayOptions) -> int:
    """Return how many requests of the chosen labels were recorded: that many are one loop."""
    chosen = options.requests or {}
    return max(sum(trace.requests[label] for label, weight in chosen.items() if weight), 1)


def _rate(trace: TraceFacts, options: ReplayOptions) -> float:
    if options.rate is not None:
        return options.rate
    seconds = max(trace.span_ns, 1) / NANOSECONDS
    return _chosen_count(trace, options) / seconds * (options.speed or 1.0)
