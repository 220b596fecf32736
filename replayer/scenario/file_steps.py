"""Steps that are calls on an open file."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from replayer.scenario.draws import SizeDraw
from replayer.scenario.operands import ZERO, OfFile, size_of_text
from replayer.scenario.part import SlotName
from replayer.scenario.units import Size


class Close(OfFile):
    """close(2)."""

    do: Literal["close"]


class Read(OfFile):
    """read(2): one call, or with ``until: end`` calls until one returns nothing.

    ``length: entry`` says that a file read to its end must be as long as the entry that its name is
    bound to, or was made from; what no step changes is checked without it.
    """

    do: Literal["read"]
    size: SizeDraw = size_of_text("64KiB")
    until: Literal["end"] | None = None
    length: Literal["entry"] | None = None

    @model_validator(mode="after")
    def _is_read_to_its_end(self) -> Self:
        if self.length is not None and self.until is None:
            message = "length goes with until: end, which is missing"
            raise PydanticCustomError("length", message, {})
        return self


class _At(OfFile):
    size: SizeDraw = size_of_text("4KiB")
    offset: SizeDraw | Literal["random"] = Field(ZERO, union_mode="left_to_right")
    align: Annotated[Size, Field(ge=1)] = 4096


class Pread(_At):
    """pread(2) at an offset, or at a random place of the file."""

    do: Literal["pread"]


class Pwrite(_At):
    """pwrite(2) at an offset, or at a random place of the file."""

    do: Literal["pwrite"]


class Write(OfFile):
    """write(2) until ``size`` bytes are written, at most ``block`` a call.

    With ``first`` the first call writes at most that.
    """

    do: Literal["write"]
    size: SizeDraw = size_of_text("4KiB")
    first: SizeDraw | None = None
    block: SizeDraw = size_of_text("1MiB")


class Append(OfFile):
    """As write, for a file opened with the flag append."""

    do: Literal["append"]
    size: SizeDraw = size_of_text("4KiB")
    first: SizeDraw | None = None
    block: SizeDraw = size_of_text("1MiB")


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


class CopyRange(OfFile):
    """copy_file_range(2) until a call returns 0, or ``until: once``: one call."""

    do: Literal["copy_range"]
    to: SlotName
    size: SizeDraw = size_of_text("1GiB")
    until: Literal["end", "once"] = "end"


class Sendfile(OfFile):
    """sendfile(2) until a call returns 0, or ``until: once``: one call."""

    do: Literal["sendfile"]
    size: SizeDraw = size_of_text("1GiB")
    until: Literal["end", "once"] = "end"


class MmapRead(OfFile):
    """Map a file and touch every page."""

    do: Literal["mmap_read"]
