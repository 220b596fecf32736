"""Steps that are system calls: on a path, on an open file, or on either.

A class stands for every word whose operands are the same. ``replayer.plan.calls`` compiles them.
"""

import errno
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from replayer.scenario.document import nearest_hint
from replayer.scenario.draws import DurationDraw, SizeDraw
from replayer.scenario.part import Part, SlotName
from replayer.scenario.places import Place, Template
from replayer.scenario.units import Mode, Size, show_value, wrong

ERRNO_NAMES = frozenset(name for name in dir(errno) if name.startswith("E"))
"""Both names where two share a number: EOPNOTSUPP and ENOTSUP."""

OUTCOMES = frozenset({"ok", "any", "layout", "SHORT", "UNMET"}) | ERRNO_NAMES
"""What a step may come to; ``layout`` is ok where the dataset holds the name, ENOENT elsewhere."""


def _read_expect(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise wrong(f"must be ok, any, an errno name or a list of them, got {show_value(value)}")
    for name in names:
        if not isinstance(name, str) or name not in OUTCOMES:
            hint = nearest_hint(str(name), OUTCOMES, kind="outcomes")
            raise wrong(f"{show_value(name)} is neither ok, any nor an errno name", hint)
    if "layout" in names and len(names) > 1:
        raise wrong("layout allows no other outcome with it")
    return tuple(names)


Expect = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_expect),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


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
            raise wrong("has both a path and a file; give only one")
        return self


class OfTwoPaths(OfPath):
    """A call on two paths, which may share a name: then it stands for ``to`` afterwards."""

    to: Annotated[
        Place, BeforeValidator(lambda place: {"path": place} if isinstance(place, str) else place)
    ]

    @property
    def takes_over(self) -> bool:
        """Whether ``to`` is bound to the name that the path still has during the call."""
        return self.to.binds and self.to.slot == self.slot


class Bind(StepPart, Place):
    """Only give a path a name; no call."""

    do: Literal["bind"]


class PathCall(OfPath):
    """stat(2), lstat(2), rmdir(2), unlink(2), readlink(2) or listxattr(2)."""

    do: Literal["stat", "lstat", "rmdir", "unlink", "readlink", "listxattr"]


Flag = Literal[
    "rdonly", "wronly", "rdwr", "append", "creat", "create", "excl", "trunc", "nofollow",
    "directory", "nonblock", "noctty", "noatime", "path", "sync", "dsync", "direct",
]  # fmt: skip


class Open(OfPath):
    """open(2); the name then stands for the open file as well."""

    do: Literal["open"]
    flags: tuple[Flag, ...] = ("rdonly",)
    mode: Mode = 0o644

    @model_validator(mode="after")
    def _has_one_access(self) -> Self:
        ways = [flag for flag in ("rdonly", "wronly", "rdwr") if flag in self.flags]
        if len(ways) > 1:
            raise wrong(f"has the flags {' and '.join(ways)}; give only one of them")
        return self


class Access(OfPath):
    """access(2)."""

    do: Literal["access"]
    check: Literal["exists", "read", "write", "execute"] = "exists"


class List(OfEither):
    """Read a directory to its end: open, getdents, close; with ``file`` getdents only."""

    do: Literal["list"]


EntryMode = Annotated[
    Mode | None,
    BeforeValidator(lambda mode: None if mode == "entry" else mode),
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


class Mkdir(OfPath):
    """mkdir(2)."""

    do: Literal["mkdir"]
    mode: EntryMode = 0o755


class Rename(OfTwoPaths):
    """rename(2), or renameat2(2) that refuses or exchanges what exists."""

    do: Literal["rename"]
    existing: Literal["replace", "refuse", "exchange"] = "replace"


class Link(OfTwoPaths):
    """link(2): a hard link."""

    do: Literal["link"]


class Symlink(OfPath):
    """symlink(2); without a target that of the dataset's entry."""

    do: Literal["symlink"]
    target: Template | None = None


ZERO = SizeDraw.model_validate(0)


class Truncate(OfEither):
    """truncate(2), or with ``file`` ftruncate(2)."""

    do: Literal["truncate"]
    size: SizeDraw = ZERO


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


MAX_ATTRIBUTE_BYTES = 255  # XATTR_NAME_MAX of Linux


def _fits(name: str) -> str:
    size_bytes = len(name.encode("utf-8", "surrogatepass"))
    if size_bytes > MAX_ATTRIBUTE_BYTES:
        raise wrong(f"must be at most {MAX_ATTRIBUTE_BYTES} bytes, got {size_bytes}")
    return name


Attribute = Annotated[
    str,
    Field(pattern=r"^(user\.[^\x00]{1,250}|system\.posix_acl_(access|default))$"),
    AfterValidator(_fits),
]


class AttributeCall(OfPath):
    """getxattr(2) or removexattr(2)."""

    do: Literal["getxattr", "removexattr"]
    attribute: Attribute


class Setxattr(OfPath):
    """setxattr(2) of so many bytes."""

    do: Literal["setxattr"]
    attribute: Attribute
    size: SizeDraw = SizeDraw.model_validate("64B")


class FileCall(OfFile):
    """close(2), fsync(2), fdatasync(2), fstat(2), FS_IOC_FIEMAP, or mmap(2) and a touch of all."""

    do: Literal["close", "fsync", "fdatasync", "fstat", "fiemap", "mmap_read"]


class Read(OfFile):
    """read(2): one call, or with ``until: end`` calls until one returns nothing.

    With ``length: entry`` a file that is read to its end must be as long as the entry that its name
    is bound to, or was made from. Files that no step changes are checked in any case.
    """

    do: Literal["read"]
    size: SizeDraw = SizeDraw.model_validate("64KiB")
    until: Literal["end"] | None = None
    length: Literal["entry"] | None = None

    @model_validator(mode="after")
    def _is_read_to_its_end(self) -> Self:
        if self.length is not None and self.until is None:
            raise wrong("length needs until: end, which is missing")
        return self


class AtOffset(OfFile):
    """pread(2) or pwrite(2) at an offset, or at a random place of the file."""

    do: Literal["pread", "pwrite"]
    size: SizeDraw = SizeDraw.model_validate("4KiB")
    offset: SizeDraw | Literal["random"] = Field(ZERO, union_mode="left_to_right")
    align: Annotated[Size, Field(ge=1)] = 4096


class Write(OfFile):
    """write(2) until ``size`` bytes are written, at most ``block`` a call.

    With ``first`` the first call writes at most that. ``append`` is for a file opened with that
    flag.
    """

    do: Literal["write", "append"]
    size: SizeDraw = SizeDraw.model_validate("4KiB")
    first: SizeDraw | None = None
    block: SizeDraw = SizeDraw.model_validate("1MiB")


class Lseek(OfFile):
    """lseek(2)."""

    do: Literal["lseek"]
    offset: SizeDraw = ZERO
    whence: Literal["set", "cur", "end"] = "set"


class Fallocate(OfFile):
    """fallocate(2)."""

    do: Literal["fallocate"]
    offset: SizeDraw = ZERO
    size: SizeDraw
    how: Literal["allocate", "keep_size", "punch_hole", "zero_range"] = "allocate"


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


class Sendfile(OfFile):
    """sendfile(2) until a call returns 0, or ``until: once``: one call."""

    do: Literal["sendfile"]
    size: SizeDraw = SizeDraw.model_validate("1GiB")
    until: Literal["end", "once"] = "end"


class CopyRange(OfFile):
    """copy_file_range(2) until a call returns 0, or ``until: once``: one call."""

    do: Literal["copy_range"]
    to: SlotName
    size: SizeDraw = SizeDraw.model_validate("1GiB")
    until: Literal["end", "once"] = "end"


CallStep = (
    Bind | PathCall | Open | Access | List | Mkdir | Rename | Link | Symlink | Truncate | Chmod
    | Chown | Utimens | AttributeCall | Setxattr | FileCall | Read | AtOffset | Write | Lseek
    | Fallocate | Flock | Lock | Sendfile | CopyRange
)  # fmt: skip
