"""What steps have in common: the path or the open file they work on, and what they may come to."""

import errno
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from replayer.scenario.draws import SizeDraw
from replayer.scenario.part import Part, SlotName
from replayer.scenario.places import Place
from replayer.scenario.problems import nearest_hint
from replayer.scenario.units import Mode, show_value

ERRNO_NAMES = frozenset(name for name in dir(errno) if name.startswith("E"))
"""Both names where two share a number: EOPNOTSUPP and ENOTSUP."""

OUTCOMES = frozenset({"ok", "any", "layout", "SHORT", "UNMET"}) | ERRNO_NAMES
"""What a step may come to; ``layout`` is ok where the dataset holds the name, ENOENT elsewhere."""


def _read_expect(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        message = "must be ok, any, an errno name or a list of them, got {value}"
        raise PydanticCustomError("expect", message, {"value": show_value(value)})
    for name in names:
        if not isinstance(name, str) or name not in OUTCOMES:
            hint = nearest_hint(str(name), OUTCOMES, kind="outcomes")
            message = "{value} is neither ok, any nor the name of an errno"
            raise PydanticCustomError("expect", message, {"value": show_value(name), "hint": hint})
    if "layout" in names and len(names) > 1:
        raise PydanticCustomError("expect", "layout stands alone: it decides by itself", {})
    return tuple(names)


Expect = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_expect),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _read_entry_mode(value: object) -> object:
    return None if value == "entry" else value


EntryMode = Annotated[
    Mode | None,
    BeforeValidator(_read_entry_mode),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": "^((0o)?[0-7]{1,5}|entry)$"},
                {"type": "integer", "minimum": 0},
            ]
        }
    ),
]
"""Permission bits, or ``entry`` (None): those of what the name is bound to."""

ZERO = SizeDraw.model_validate(0)


def size_of_text(text: str) -> SizeDraw:
    """Return the draw that always gives this size."""
    return SizeDraw.model_validate(text)


class StepPart(Part):
    """What all steps have."""

    SHORT: ClassVar[str] = ""
    """The operand that a step written as ``word: value`` gives; empty if it has to be a mapping."""

    do: str


class Timed(StepPart):
    """A system call."""

    expect: Expect = ("ok",)


class OfPath(Timed, Place):
    """A call on a path."""

    SHORT: ClassVar[str] = "path"


class OfFile(Timed):
    """A call on an open file."""

    SHORT: ClassVar[str] = "file"

    file: SlotName = "file"


class OfEither(OfPath):
    """A call on a path, or with ``file`` on an open file."""

    file: SlotName | None = None

    @model_validator(mode="after")
    def _is_not_both(self) -> Self:
        if self.file is not None and (self.path or self.binds):
            raise PydanticCustomError("place", "has both a path and a file; give one", {})
        return self
