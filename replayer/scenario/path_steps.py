"""Steps that are calls on a path."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from replayer.scenario.draws import DurationDraw, SizeDraw
from replayer.scenario.operands import ZERO, EntryMode, OfEither, OfPath, StepPart, size_of_text
from replayer.scenario.places import Place, Template
from replayer.scenario.units import Mode

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


class Bind(StepPart, Place):
    """Only give a path a name; no call."""

    do: Literal["bind"]


class Open(OfPath):
    """open(2); the name then stands for the open file as well."""

    do: Literal["open"]
    flags: tuple[Flag, ...] = ("rdonly",)
    mode: Mode = 0o644

    @model_validator(mode="after")
    def _has_one_access(self) -> Self:
        ways = [flag for flag in ("rdonly", "wronly", "rdwr") if flag in self.flags]
        if len(ways) > 1:
            message = "has the flags {ways}, of which there can be one"
            raise PydanticCustomError("flags", message, {"ways": " and ".join(ways)})
        return self


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


class OfTwoPaths(OfPath):
    """A call on two paths, which may share a name: then it stands for ``to`` afterwards."""

    to: To

    @property
    def takes_over(self) -> bool:
        """Whether ``to`` is bound to the name that the path still has during the call."""
        return self.to.binds and self.to.slot == self.slot


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


class Readlink(OfPath):
    """readlink(2)."""

    do: Literal["readlink"]


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
        message = "must be at most {most} bytes, got {size_bytes}"
        context = {"most": MAX_ATTRIBUTE_BYTES, "size_bytes": size_bytes}
        raise PydanticCustomError("attribute", message, context)
    return name


Attribute = Annotated[
    str,
    Field(pattern=r"^(user\.[^\x00]{1,250}|system\.posix_acl_(access|default))$"),
    AfterValidator(_fits),
]


class Getxattr(OfPath):
    """getxattr(2)."""

    do: Literal["getxattr"]
    attribute: Attribute


class Setxattr(OfPath):
    """setxattr(2) of so many bytes."""

    do: Literal["setxattr"]
    attribute: Attribute
    size: SizeDraw = size_of_text("64B")


class Listxattr(OfPath):
    """listxattr(2)."""

    do: Literal["listxattr"]


class Removexattr(OfPath):
    """removexattr(2)."""

    do: Literal["removexattr"]
    attribute: Attribute
