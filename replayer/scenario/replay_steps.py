"""The step that replays a trace, and transactions that are nothing else.

What a trace holds is judged in ``replayer.scenario.loading``, once the file has been read.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from replayer.scenario.operands import StepPart
from replayer.scenario.units import show_value

SLOWEST, FASTEST = 0.01, 10_000.0
"""What plan format 1 can hold, in hundredths."""


def _read_speed(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = "must be a number such as 1 or 0.5, got {value}"
        raise PydanticCustomError("speed", message, {"value": show_value(value)})
    if not SLOWEST <= value <= FASTEST:
        message = "must be from {low} to {high}, got {value}"
        context = {"low": SLOWEST, "high": int(FASTEST), "value": show_value(value)}
        raise PydanticCustomError("speed", message, context)
    return value


Speed = Annotated[
    float,
    BeforeValidator(_read_speed),
    WithJsonSchema({"type": "number", "minimum": SLOWEST, "maximum": FASTEST}),
]
"""1 is as recorded, 2 twice as fast."""


class Replay(StepPart):
    """Replay a trace, or one of its requests."""

    SHORT: ClassVar[str] = "trace"
    do: Literal["replay"]
    trace: Annotated[str, Field(min_length=1)]
    request: str | None = None
    pace: Literal["asap", "closed", "timed"] = "closed"
    speed: Speed = 1.0


def read_transaction(value: object) -> object:
    """Bring a transaction written as ``{trace: …, request: …}`` into a list of one step."""
    if not isinstance(value, dict):
        return value
    if "trace" not in value:
        message = "must be a list of steps, or a mapping with trace, got {value}"
        shown = f"the keys {', '.join(map(str, value))}" if value else "an empty mapping"
        raise PydanticCustomError("transaction", message, {"value": shown})
    return [{"replay": value}]
