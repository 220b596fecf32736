"""What master and workers send each other: the forms of messages, and nothing that acts.

Locust's messages hold whatever MessagePack can; histograms travel as compressed HDR V2. Results are
numbered and sent until they are acknowledged, as a connection that breaks loses what was on it.
The readers here refuse whatever has not its form: who acts on a message need not look again.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from replayer._native import Histogram, Interval, Row
from replayer.errors import EXIT_BUG, OutsideError, ReplayerError
from replayer.measure.clients import TaskFailure
from replayer.measure.facts import MachineFacts
from replayer.measure.health import Health
from replayer.measure.hlog import Phase
from replayer.measure.replay import ReplayResults
from replayer.measure.run import Target as TargetFacts
from replayer.run.interruption import InterruptedRunError

PROTOCOL = 8
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
Count = Annotated[int, Field(ge=0)]
Exit = Literal[1, 2, 3, 4, 70]


class WireForm(BaseModel):
    """What a message must hold; what it holds beside that is nobody's business."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Refusal(WireForm):
    message: str
    hint: str = ""
    exit_code: Exit
    interrupted: bool = False


class _Hello(WireForm):
    protocol: int
    host: str
    pid: int
    targets: list[str] = Field(min_length=1)


class _Answer(WireForm):
    ticket: Count
    error: _Refusal | None = None


class _Event(WireForm):
    kind: str = "?"
    t_s: float | None = None


class _News(WireForm):
    state: dict[str, Any]
    number: int | None = Field(default=None, ge=1)
    intervals: list[Any] = []
    events: list[str] = []


@dataclass(frozen=True)
class WorkerState:
    """How a worker is."""

    serial: int = 0
    """The segment it is in, counted from 1; 0 before the first."""
    running: int = 0
    busy: int = 0
    given_up: int = 0
    """Users that hang in the kernel."""
    hanging: tuple[tuple[str, float], ...] = ()
    """Calls that do not come back, and for how many seconds."""
    refusal: Data | None = None
    """Why it cannot go on as it should, as ``pack_error`` has it."""
    leaving: str | None = None
    """Why it leaves by itself."""
    has_told_all: bool = False
    """Of one that leaves: whether it tells no more of what it has measured."""

    def pack(self) -> dict[str, Any]:
        """Return it as a message holds it."""
        return {**vars(self), "hanging": [list(each) for each in self.hanging]}

    @staticmethod
    def unpack(data: Data) -> "WorkerState":
        """Read it from a message.

        Raises:
            ValueError: It is none.
        """
        if data.get("refusal") is not None:
            _Refusal.model_validate(data["refusal"])
        return _STATE.validate_python(data)


_STATE = TypeAdapter(WorkerState)


@dataclass(frozen=True)
class News:
    """What a worker tells by itself."""

    state: WorkerState
    number: int | None
    """Of the results, counted from 1; None when there are none."""
    intervals: tuple[Interval, ...] = ()
    events: tuple[dict[str, JsonValue], ...] = ()
    """What events.jsonl has that is worth telling."""

    @classmethod
    def unpack(cls, data: object) -> Self:
        """Read it from a message.

        Raises:
            ValueError: It is none.
        """
        found = _News.model_validate(data)
        return cls(
            WorkerState.unpack(found.state),
            found.number,
            tuple(unpack_interval(each) for each in found.intervals),
            tuple(read_event(line) for line in found.events),
        )


def read_event(line: str | bytes) -> dict[str, JsonValue]:
    """Read a line of events.jsonl.

    Raises:
        ValueError: It is none, as one that a full disk has cut short.
    """
    event: dict[str, JsonValue] = json.loads(line)
    _Event.model_validate(event)
    return event


def _read_hello(data: Any) -> Data:  # noqa: ANN401 - any message
    _Hello.model_validate(data)
    found: Data = data
    return found


def _read_answer(data: Any) -> Data:  # noqa: ANN401 - any message
    answer = _Answer.model_validate(data)
    if answer.error is None and "found" not in data:
        raise ValueError("the answer has no content")
    found: Data = data
    return found


READERS: Mapping[str, Callable[[Any], object]] = {
    HELLO: _read_hello,
    ANSWER: _read_answer,
    NEWS: News.unpack,
}
"""Return what a worker's message holds, or raise a ValueError where it has not its form."""


class _Facts(WireForm):
    targets: list[TargetFacts] = Field(min_length=1)
    machine: MachineFacts
    procedure: str
    paths: list[Annotated[list[str], Field(min_length=1)]]
    users: Count
    keeps: bool


class _Made(WireForm):
    lanes: Count | None
    folder: str


class _LastWord(WireForm):
    health: Health
    replay: ReplayResults | None
    error: _Refusal | None
    task_failures: list[TaskFailure]
    hung: bool
    hanging: list[Count]


class _Leavings(WireForm):
    kept: list[str]
    left: list[str]
    losses: list[str]


FOUND: Mapping[str, TypeAdapter[Any]] = {
    "prepare": TypeAdapter(_Facts),
    "create": TypeAdapter(list[str]),
    "engine": TypeAdapter(_Made),
    "clock": TypeAdapter(int),
    "end": TypeAdapter(Count),
    "close": TypeAdapter(_LastWord),
    "put_away": TypeAdapter(_Leavings),
}
"""What a worker answers to orders whose answers are looked at."""


def read_found(do: str, found: Any, who: str) -> Any:  # noqa: ANN401 - any message
    """Return what a worker has answered to an order.

    Raises:
        ReplayerError: It has not the form that the answer to this order has.
    """
    try:
        if do in FOUND:
            FOUND[do].validate_python(found)
    except ValidationError as error:
        message = f"{who}: its answer to {do!r} cannot be read"
        hint = "install the same version of replayer on both"
        raise OutsideError(message, hint=hint) from error
    return found


def read_name(word: str) -> str:
    """Read what a folder is called; no path is taken from another machine.

    Raises:
        ReplayerError: It would lead elsewhere.
    """
    if NAME.fullmatch(word) is None:
        message = f"the master sent the folder {word[:MOST_SHOWN]!r}, which is not a plain name"
        raise ReplayerError(message, hint="check that the master is a replayer master")
    return word


def pack_interval(interval: Interval) -> list[Any]:
    """Return an interval as a message holds it."""
    rows = [
        [
            *(row.target, row.round, row.phase, row.transaction, row.op, row.outcome),
            *(row.expected, row.bytes, row.histogram.to_v2()),
        ]
        for row in interval.rows
    ]
    return [interval.start_ns, interval.end_ns, interval.users, rows]


def unpack_interval(data: object) -> Interval:
    """Read an interval from a message.

    Raises:
        ValueError: It is none.
    """
    start_ns, end_ns, users, rows = _INTERVAL.validate_python(data)
    if end_ns < start_ns:
        raise ValueError("interval end is before its start")
    return Interval(start_ns, end_ns, users, tuple(_unpack_row(row) for row in rows))


_RowWords = tuple[Count, Count, Phase, str, str, str, bool, Count, bytes]
_INTERVAL: TypeAdapter[tuple[int, int, int, list[_RowWords]]] = TypeAdapter(
    tuple[Count, Count, Count, list[_RowWords]]
)


def _unpack_row(row: _RowWords) -> Row:
    target, turn, phase, transaction, op, outcome, expected, moved, blob = row
    return Row(target, turn, phase, transaction, op, outcome, expected, moved, Histogram(blob))


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
