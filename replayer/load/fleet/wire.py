"""What master and workers send each other: the forms of messages, and nothing that acts.

Locust's messages hold whatever MessagePack can; histograms travel as compressed HDR V2. Results are
numbered and sent until they are acknowledged, as a connection that breaks loses what was on it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from replayer._native import Histogram
from replayer.errors import EXIT_BUG, ReplayerError
from replayer.load.interruption import InterruptedRunError
from replayer.load.measured import MadeInterval, MadeRow, MeasuredInterval

__all__ = [
    "ANSWER",
    "HELLO",
    "NEWS",
    "ORDER",
    "PROTOCOL",
    "TAKEN",
    "News",
    "State",
    "pack_error",
    "pack_interval",
    "read_name",
    "unpack_error",
    "unpack_interval",
]

PROTOCOL = 5
"""Raised when a worker of today would misunderstand a master of tomorrow."""

HELLO = "replayer_hello"  # worker to master: I am here
ORDER = "replayer_order"  # master to worker: do this
ANSWER = "replayer_answer"  # worker to master: done, or why not
NEWS = "replayer_news"  # worker to master: how I am, and what was measured
TAKEN = "replayer_taken"  # master to worker: these results are safe

NAME = re.compile(r"[A-Za-z0-9_-]{1,220}")
"""Of runs, and of their folders on targets."""
MOST_SHOWN = 80

Data = Mapping[str, Any]


@dataclass(frozen=True)
class State:
    """How a worker is.

    Attributes:
        serial: The segment it is in, counted from 1; 0 before the first.
        running: Users that have a thread.
        busy: Users with more to do in this segment.
        given_up: Users that hang in the kernel.
        hanging: Calls that do not come back, and for how many seconds.
        refusal: Why it cannot go on as it should, as ``pack_error`` has it.
        leaving: Why it leaves by itself.
    """

    serial: int = 0
    running: int = 0
    busy: int = 0
    given_up: int = 0
    hanging: tuple[tuple[str, float], ...] = ()
    refusal: Data | None = None
    leaving: str | None = None

    def pack(self) -> dict[str, Any]:
        """Return it as a message holds it."""
        return {**vars(self), "hanging": [list(each) for each in self.hanging]}

    @classmethod
    def unpack(cls, data: Data) -> Self:
        """Read it from a message."""
        hanging = tuple((str(call), float(age_s)) for call, age_s in data["hanging"])
        return cls(**{**data, "hanging": hanging})


@dataclass(frozen=True)
class News:
    """What a worker tells by itself.

    Attributes:
        state: How it is.
        number: Of the results, counted from 1; None when there are none.
        intervals: What was measured.
        events: Lines of events.jsonl that are worth telling, as they are.
    """

    state: State
    number: int | None
    intervals: tuple[MadeInterval, ...] = ()
    events: tuple[str, ...] = ()

    @classmethod
    def unpack(cls, data: Data) -> Self:
        """Read it from a message."""
        return cls(
            State.unpack(data["state"]),
            data.get("number"),
            tuple(unpack_interval(each) for each in data.get("intervals", ())),
            tuple(data.get("events", ())),
        )


def read_name(word: str) -> str:
    """Read what a folder is called; no path is taken from another machine.

    Raises:
        ReplayerError: It would lead elsewhere.
    """
    if NAME.fullmatch(word) is None:
        message = f"the master named a folder {word[:MOST_SHOWN]!r}, which is no plain name"
        raise ReplayerError(message, hint="is that a master of replayer?")
    return word


def pack_interval(interval: MeasuredInterval) -> list[Any]:
    """Return an interval as a message holds it."""
    rows = [
        [
            *(row.target, row.round, row.phase, row.transaction, row.op, row.outcome),
            *(row.expected, row.bytes, row.histogram.to_v2()),
        ]
        for row in interval.rows
    ]
    return [interval.start_ns, interval.end_ns, interval.users, rows]


def unpack_interval(data: Sequence[Any]) -> MadeInterval:
    """Read an interval from a message."""
    start_ns, end_ns, users, rows = data
    return MadeInterval(start_ns, end_ns, users, tuple(_unpack_row(row) for row in rows))


def _unpack_row(data: Sequence[Any]) -> MadeRow:
    target, turn, phase, transaction, op, outcome, expected, moved, blob = data
    return MadeRow(
        target, turn, phase, transaction, op, outcome, expected, moved, Histogram(bytes(blob))
    )


Exit = Literal[1, 2, 3, 4, 70]


class RemoteError(ReplayerError):
    """What a worker refused, told by the master."""


class RemoteInterruptionError(RemoteError, InterruptedRunError):
    """What a worker left undone as the run was to end."""


def pack_error(error: BaseException) -> dict[str, Any]:
    """Return a refusal as a message holds it."""
    if isinstance(error, ReplayerError):
        return {
            "message": str(error),
            "hint": error.hint,
            "exit_code": error.exit_code,
            "interrupted": isinstance(error, InterruptedRunError),
        }
    message = f"{type(error).__name__}: {error}"
    return {"message": message, "hint": "this is a bug in replayer", "exit_code": EXIT_BUG}


def unpack_error(data: Data, who: str) -> ReplayerError:
    """Read a refusal from a message, naming who refused."""
    kind = RemoteInterruptionError if data.get("interrupted") else RemoteError
    error = kind(f"{who}: {data['message']}", hint=str(data.get("hint", "")))
    error.exit_code = int(data["exit_code"])
    return error
