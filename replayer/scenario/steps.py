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
    """Only give a path a name; no call."""

    do: Literal["bind"]


class Open(OfPath):
    """open(2); the name then stands for the open file as well."""

    do: Literal["open"]
    flags: tuple[Flag, ...] = ("rdonly",)
    mode: Mode = 0o644


class Close(OfFile):
    """close(2)."""

    do: Literal["close"]


class Read(OfFile):
    """read(2): one call, or with ``until: end`` calls until one returns nothing."""

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
    """pread(2) at an offset, or at a random place of the file."""

    do: Literal["pread"]


class Pwrite(_At):
    """pwrite(2) at an offset, or at a random place of the file."""

    do: Literal["pwrite"]


class Write(OfFile):
    """write(2) until ``size`` bytes are written, at most ``block`` a call."""

    do: Literal["write"]
    size: SizeDraw = _size("4KiB")
    block: SizeDraw = _size("1MiB")


class Append(OfFile):
    """As write, for a file opened with the flag append."""

    do: Literal["append"]
    size: SizeDraw = _size("4KiB")
    block: SizeDraw = _size("1MiB")


class Lseek(OfFile):
    """lseek(2)."""

    do: Literal["lseek"]
    offset: SizeDraw = ZERO
    whence: Literal["set", "cur", "end"] = "set"


class Fsync(OfFile):
    """fsync(2)."""

    do: Literal["fsync"]


class Fdatasync(OfFile):
    """fdatasync(2)."""

    do: Literal["fdatasync"]


class Fstat(OfFile):
    """fstat(2)."""

    do: Literal["fstat"]


class Stat(OfPath):
    """stat(2)."""

    do: Literal["stat"]


class Lstat(OfPath):
    """lstat(2)."""

    do: Literal["lstat"]


class Access(OfPath):
    """access(2)."""

    do: Literal["access"]
    check: Literal["exists", "read", "write", "execute"] = "exists"


class List(OfEither):
    """Read a directory to its end: open, getdents, close; with ``file`` getdents only."""

    do: Literal["list"]


class Mkdir(OfPath):
    """mkdir(2)."""

    do: Literal["mkdir"]
    mode: EntryMode = 0o755


class Rmdir(OfPath):
    """rmdir(2)."""

    do: Literal["rmdir"]


class Unlink(OfPath):
    """unlink(2)."""

    do: Literal["unlink"]


def _read_to(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


To = Annotated[Place, BeforeValidator(_read_to)]


class Rename(OfPath):
    """rename(2), or renameat2(2) that refuses or exchanges what exists."""

    do: Literal["rename"]
    to: To
    existing: Literal["replace", "refuse", "exchange"] = "replace"


class Link(OfPath):
    """link(2): a hard link."""

    do: Literal["link"]
    to: To


class Symlink(OfPath):
    """symlink(2); without a target that of the dataset's entry."""

    do: Literal["symlink"]
    target: Template | None = None


class Readlink(OfPath):
    """readlink(2)."""

    do: Literal["readlink"]


class Truncate(OfEither):
    """truncate(2), or with ``file`` ftruncate(2)."""

    do: Literal["truncate"]
    size: SizeDraw = ZERO


class Fallocate(OfFile):
    """fallocate(2)."""

    do: Literal["fallocate"]
    offset: SizeDraw = ZERO
    size: SizeDraw
    how: Literal["allocate", "keep_size", "punch_hole", "zero_range"] = "allocate"


class Chmod(OfEither):
    """chmod(2), or with ``file`` fchmod(2); ``entry`` is the mode in the dataset."""

    do: Literal["chmod"]
    mode: EntryMode


Owner = Annotated[int, Field(ge=-1, le=2**32 - 2)]


class Chown(OfEither):
    """lchown(2), or with ``file`` fchown(2); -1 leaves it."""

    do: Literal["chown"]
    uid: Owner = -1
    gid: Owner = -1


class Utimens(OfEither):
    """utimensat(2), or with ``file`` futimens(3); without ``mtime`` now."""

    do: Literal["utimens"]
    mtime: DurationDraw | None = None


class Flock(OfFile):
    """flock(2)."""

    do: Literal["flock"]
    kind: Literal["shared", "exclusive", "unlock"] = "exclusive"
    wait: bool = True


class Lock(OfFile):
    """fcntl(2) record locks."""

    do: Literal["lock"]
    kind: Literal["shared", "exclusive", "unlock"] = "exclusive"
    wait: bool = True
    offset: SizeDraw = ZERO
    size: SizeDraw = ZERO


Attribute = Annotated[str, Field(pattern=r"^user\.[^\x00]{1,250}$")]


class Getxattr(OfPath):
    """getxattr(2)."""

    do: Literal["getxattr"]
    attribute: Attribute


class Setxattr(OfPath):
    """setxattr(2) of so many bytes."""

    do: Literal["setxattr"]
    attribute: Attribute
    size: SizeDraw = _size("64B")


class Listxattr(OfPath):
    """listxattr(2)."""

    do: Literal["listxattr"]


class Removexattr(OfPath):
    """removexattr(2)."""

    do: Literal["removexattr"]
    attribute: Attribute


class CopyRange(OfFile):
    """copy_file_range(2) until the end of the file."""

    do: Literal["copy_range"]
    to: SlotName
    size: SizeDraw = _size("1GiB")


class Sendfile(OfFile):
    """sendfile(2) until the end of the file."""

    do: Literal["sendfile"]
    size: SizeDraw = _size("1GiB")


class MmapRead(OfFile):
    """Map a file and touch every page."""

    do: Literal["mmap_read"]


class Think(StepPart):
    """Wait; part of the latency of the transaction, not of its file time."""

    SHORT: ClassVar[str] = "time"
    do: Literal["think"]
    time: DurationDraw


class Repeat(StepPart):
    """Do steps several times."""

    do: Literal["repeat"]
    times: CountDraw
    steps: "Steps"


class Branch(Part):
    """A way of a choice."""

    weight: Count = 1
    steps: "Steps"


class Choose(StepPart):
    """Do the steps of one of several branches, drawn by weight."""

    SHORT: ClassVar[str] = "branches"
    do: Literal["choose"]
    branches: Annotated[tuple[Branch, ...], Field(min_length=1)]


class Each(StepPart):
    """Do steps for every entry of a dataset, in the order of its entries."""

    do: Literal["each"]
    of: Name
    as_: SlotName = Field("entry", alias="as")
    reverse: bool = False
    file: "Steps" = ()
    directory: "Steps" = ()
    link: "Steps" = ()


class For(StepPart):
    """Do steps for each of some names."""

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
    """Do a sequence for each path of a table beside the scenario."""

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
    """Do the steps of a sequence."""

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
            "unknown_step", "is the unknown step {word}", {"word": word, "hint": hint}
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
    message = "must be a word or a mapping with one key, got {value}"
    shown = f"the keys {', '.join(value)}" if isinstance(value, dict) else show_value(value)
    raise PydanticCustomError("step", message, {"value": shown})


Step = Annotated[AnyStep, Field(discriminator="do"), BeforeValidator(read_step)]
Steps = tuple[Step, ...]
for _step in (*AnyStep.__args__, Branch):
    _step.model_rebuild()
