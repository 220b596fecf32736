"""The steps of a transaction: one class for each word that may stand in a list of steps.

A step is written as a word (``close``) or as a mapping with one key (``close: session``);
``read_step`` brings both into one form. What the steps mean together (names bound, files open) is
judged in ``replayer.scenario.flow``.
"""

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from replayer.scenario.draws import CountDraw, DurationDraw, SizeDraw
from replayer.scenario.part import Name, Part, SlotName
from replayer.scenario.places import Place, Template
from replayer.scenario.problems import nearest_hint
from replayer.scenario.units import Count, Mode, Size, show_value

__all__ = ["STEPS", "Step", "StepPart"]

OUTCOMES = frozenset({"ok", "any", "layout", *errno.errorcode.values()})
"""What a call may come to; ``layout`` is ok where the dataset holds the name, ENOENT elsewhere."""


def _read_expect(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        message = "must be ok, any, an errno name or a list of them, got {value}"
        raise PydanticCustomError("expect", message, {"value": show_value(value)})
    for name in names:
        if name not in OUTCOMES:
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

Flag = Literal[
    "rdonly",
    "wronly",
    "rdwr",
    "append",
    "creat",
    "create",
    "excl",
    "trunc",
    "nofollow",
    "directory",
    "nonblock",
    "noctty",
    "noatime",
    "path",
    "sync",
    "dsync",
    "direct",
]
ZERO = SizeDraw.model_validate(0)


def _size(text: str) -> SizeDraw:
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


class Bind(StepPart, Place):
    do: Literal["bind"]


class Open(OfPath):
    do: Literal["open"]
    flags: tuple[Flag, ...] = ("rdonly",)
    mode: Mode = 0o644


class Close(OfFile):
    do: Literal["close"]


class Read(OfFile):
    do: Literal["read"]
    size: SizeDraw = _size("64KiB")
    until: Literal["end"] | None = None


class _At(OfFile):
    size: SizeDraw = _size("4KiB")
    offset: SizeDraw | Literal["random"] = Field(ZERO, union_mode="left_to_right")
    align: Annotated[Size, Field(ge=1)] = 4096

    @model_validator(mode="before")
    @classmethod
    def _random_is_a_word(cls, value: object) -> object:
        return value


class Pread(_At):
    do: Literal["pread"]


class Pwrite(_At):
    do: Literal["pwrite"]


class Write(OfFile):
    do: Literal["write"]
    size: SizeDraw = _size("4KiB")
    block: SizeDraw = _size("1MiB")


class Append(OfFile):
    do: Literal["append"]
    size: SizeDraw = _size("4KiB")
    block: SizeDraw = _size("1MiB")


class Lseek(OfFile):
    do: Literal["lseek"]
    offset: SizeDraw = ZERO
    whence: Literal["set", "cur", "end"] = "set"


class Fsync(OfFile):
    do: Literal["fsync"]


class Fdatasync(OfFile):
    do: Literal["fdatasync"]


class Fstat(OfFile):
    do: Literal["fstat"]


class Stat(OfPath):
    do: Literal["stat"]


class Lstat(OfPath):
    do: Literal["lstat"]


class Access(OfPath):
    do: Literal["access"]
    check: Literal["exists", "read", "write", "execute"] = "exists"


class List(OfEither):
    do: Literal["list"]


class Mkdir(OfPath):
    do: Literal["mkdir"]
    mode: Mode | None = 0o755


class Rmdir(OfPath):
    do: Literal["rmdir"]


class Unlink(OfPath):
    do: Literal["unlink"]


def _read_to(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


To = Annotated[Place, BeforeValidator(_read_to)]


class Rename(OfPath):
    do: Literal["rename"]
    to: To
    existing: Literal["replace", "refuse", "exchange"] = "replace"


class Link(OfPath):
    do: Literal["link"]
    to: To


class Symlink(OfPath):
    do: Literal["symlink"]
    target: Template | None = None


class Readlink(OfPath):
    do: Literal["readlink"]


class Truncate(OfEither):
    do: Literal["truncate"]
    size: SizeDraw = ZERO


class Fallocate(OfFile):
    do: Literal["fallocate"]
    offset: SizeDraw = ZERO
    size: SizeDraw
    how: Literal["allocate", "keep_size", "punch_hole", "zero_range"] = "allocate"


def _read_entry_mode(value: object) -> object:
    return None if value == "entry" else value


class Chmod(OfEither):
    do: Literal["chmod"]
    mode: Annotated[Mode | None, BeforeValidator(_read_entry_mode)]


Owner = Annotated[int, Field(ge=-1, le=2**32 - 2)]


class Chown(OfEither):
    do: Literal["chown"]
    uid: Owner = -1
    gid: Owner = -1


class Utimens(OfEither):
    do: Literal["utimens"]
    mtime: DurationDraw | None = None


class Flock(OfFile):
    do: Literal["flock"]
    kind: Literal["shared", "exclusive", "unlock"] = "exclusive"
    wait: bool = True


class Lock(OfFile):
    do: Literal["lock"]
    kind: Literal["shared", "exclusive", "unlock"] = "exclusive"
    wait: bool = True
    offset: SizeDraw = ZERO
    size: SizeDraw = ZERO


Attribute = Annotated[str, Field(pattern=r"^user\.[^\x00]{1,250}$")]


class Getxattr(OfPath):
    do: Literal["getxattr"]
    attribute: Attribute


class Setxattr(OfPath):
    do: Literal["setxattr"]
    attribute: Attribute
    size: SizeDraw = _size("64B")


class Listxattr(OfPath):
    do: Literal["listxattr"]


class Removexattr(OfPath):
    do: Literal["removexattr"]
    attribute: Attribute


class CopyRange(OfFile):
    do: Literal["copy_range"]
    to: SlotName
    size: SizeDraw = _size("1GiB")


class Sendfile(OfFile):
    do: Literal["sendfile"]
    size: SizeDraw = _size("1GiB")


class MmapRead(OfFile):
    do: Literal["mmap_read"]


class Think(StepPart):
    SHORT: ClassVar[str] = "time"
    do: Literal["think"]
    time: DurationDraw


class Repeat(StepPart):
    do: Literal["repeat"]
    times: CountDraw
    steps: "Steps"


class Branch(Part):
    weight: Count = 1
    steps: "Steps"


class Choose(StepPart):
    SHORT: ClassVar[str] = "branches"
    do: Literal["choose"]
    branches: Annotated[tuple[Branch, ...], Field(min_length=1)]


class Each(StepPart):
    do: Literal["each"]
    of: Name
    as_: SlotName = Field("entry", alias="as")
    reverse: bool = False
    file: "Steps" = ()
    directory: "Steps" = ()
    link: "Steps" = ()


class For(StepPart):
    do: Literal["for"]
    in_: Name = Field(alias="in")
    names: Annotated[tuple[Template, ...], Field(min_length=1)]
    as_: SlotName = Field("file", alias="as")
    steps: "Steps"


@dataclass(frozen=True)
class ScriptLine:
    """A line of a script: run a sequence on a path."""

    sequence: str
    name: str
    place: str

    def below(self, directory: str | None) -> "ScriptLine":
        """Return the same line for a tree that is in a directory of the dataset."""
        if directory is None:
            return self
        name = directory if self.name == "." else f"{directory}/{self.name}"
        return ScriptLine(self.sequence, name, self.place)


class Script(StepPart):
    do: Literal["script"]
    in_: Name = Field(alias="in")
    file: str
    below: str | None = None
    as_: SlotName = Field("file", alias="as")

    _lines: tuple[ScriptLine, ...] = PrivateAttr(())

    @property
    def lines(self) -> tuple[ScriptLine, ...]:
        """What the script's file says, in order."""
        return self._lines

    def give_lines(self, lines: Iterable[ScriptLine]) -> None:
        """Keep what the file says (loading is apart from the model)."""
        self._lines = tuple(lines)


class Use(StepPart):
    SHORT: ClassVar[str] = "sequence"
    do: Literal["use"]
    sequence: Name


AnyStep = (
    Bind | Open | Close | Read | Pread | Pwrite | Write | Append | Lseek | Fsync | Fdatasync | Fstat
    | Stat | Lstat | Access | List | Mkdir | Rmdir | Unlink | Rename | Link | Symlink | Readlink |
    Truncate | Fallocate | Chmod | Chown | Utimens | Flock | Lock | Getxattr | Setxattr | Listxattr
    | Removexattr | CopyRange | Sendfile | MmapRead | Think | Repeat | Choose | Each | For | Script
    | Use
)  # fmt: skip

STEPS: dict[str, type[StepPart]] = {
    step.model_fields["do"].annotation.__args__[0]: step for step in AnyStep.__args__
}
"""Every word that may stand in a list of steps."""


def read_step(value: object) -> object:
    """Bring a step into the form ``{"do": word, operand: value…}``."""
    word, operands = _split(value)
    if word not in STEPS:
        hint = nearest_hint(word, STEPS, kind="steps")
        raise PydanticCustomError(
            "unknown_step", "unknown step {word}", {"word": word, "hint": hint}
        )
    short = STEPS[word].SHORT
    if operands is None:
        return {"do": word}
    if isinstance(operands, dict) and word != "think":
        if "do" in operands:
            raise PydanticCustomError("unknown_key", "unknown key {key}", {"key": "do"})
        return {"do": word, **operands}
    if not short:
        message = "{word} must be followed by a mapping, got {value}"
        raise PydanticCustomError("step", message, {"word": word, "value": show_value(operands)})
    return {"do": word, short: operands}


def _split(value: object) -> tuple[str, object]:
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.items()))
    message = "a step must be a word or a mapping with one key, got {value}"
    shown = f"the keys {', '.join(value)}" if isinstance(value, dict) else show_value(value)
    raise PydanticCustomError("step", message, {"value": shown})


Step = Annotated[AnyStep, Field(discriminator="do"), BeforeValidator(read_step)]
Steps = tuple[Step, ...]
for _step in (*AnyStep.__args__, Branch):
    _step.model_rebuild()
