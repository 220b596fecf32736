"""The calls of a trace as steps of a scenario. Pure."""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replayer.ops import SAME_AS, names_where

__all__ = ["CHANGES", "Call", "Step", "open_step", "path_step", "steps_of_file"]

Step = str | dict[str, Any]
"""A step as a scenario has it."""

ACCESSES = {os.O_RDONLY: "rdonly", os.O_WRONLY: "wronly", os.O_RDWR: "rdwr"}
FLAGS = {
    os.O_APPEND: "append",
    os.O_CREAT: "create",
    os.O_EXCL: "excl",
    os.O_TRUNC: "trunc",
    os.O_NOFOLLOW: "nofollow",
    os.O_DIRECTORY: "directory",
    os.O_NONBLOCK: "nonblock",
    os.O_NOCTTY: "noctty",
    os.O_NOATIME: "noatime",
    os.O_PATH: "path",
    os.O_DSYNC: "dsync",
    os.O_DIRECT: "direct",
}
CHECKS = {os.F_OK: "exists", os.R_OK: "read", os.W_OK: "write", os.X_OK: "execute"}
WHENCE = ("set", "cur", "end")
LOCK_KINDS = ("shared", "exclusive", "unlock")
"""Of fcntl(2), by the number that a trace has."""
SHARED, NO_WAIT, UNLOCK = 1, 4, 8
"""Operations of flock(2): LOCK_SH, LOCK_NB, LOCK_UN."""
LEAST_BUFFER = 8192  # chosen: what most programs read a small file with
WAITING = (7, 38)
"""F_SETLKW and F_OFD_SETLKW."""
CHANGES = names_where(
    lambda op: op.kind in {"alter", "attribute"} and SAME_AS[op.name] != "utimens"
)
"""What may not come out the same when another user has done it before."""


@dataclass(frozen=True)
class Call:
    """A row of the table ``events``; replayer/trace/FORMAT.md says what its columns mean."""

    op: str
    path: int | None = None
    file: int | None = None
    flags: int | None = None
    mode: int | None = None
    size: int | None = None
    offset: int | None = None
    result: int = 0


def path_step(call: Call) -> Step | None:
    """Return the step of a look at a path; None where scenarios have no word for it."""
    expected = _expected(call)
    if call.op in {"stat", "lstat", "readlink"}:
        return {call.op: expected}
    if call.op == "utimens" and call.result == 0:
        return {"utimens": {}}
    if call.op == "access" and (call.flags or 0) in CHECKS:
        check = CHECKS[call.flags or 0]
        return {"access": {**({} if check == "exists" else {"check": check}), **expected}}
    return None


def open_step(call: Call) -> Step:
    """Return the step of an open."""
    flags = call.flags or 0
    found = [ACCESSES.get(flags & os.O_ACCMODE, "rdonly")]
    sync = flags & os.O_SYNC == os.O_SYNC
    known = {flag: name for flag, name in FLAGS.items() if not (sync and flag == os.O_DSYNC)}
    found += [name for flag, name in known.items() if flag and flags & flag == flag]
    found += ["sync"] if sync else []
    operands = {} if found == ["rdonly"] else {"flags": found}
    # What was there is found again; only a look at what was missing may fail.
    expected = {} if call.result >= 0 else _expected(call)
    return {"open": {**operands, **expected}} if operands or expected else "open"


def steps_of_file(calls: Sequence[Call], left_out: Counter[str]) -> Iterator[Step]:
    """Yield the steps of calls on an open file; calls without a word are counted."""
    at = 0
    while at < len(calls):
        alike = 1
        while at + alike < len(calls) and _is_next(*calls[at + alike - 1 : at + alike + 1]):
            alike += 1
        own = calls[at : at + alike]
        steps = [*STEPS.get(own[0].op, _none)(own)]
        if not steps:
            left_out[own[0].op] += alike
        yield from steps
        at += alike


def _is_next(one: Call, other: Call) -> bool:
    """Whether a call moves the piece of a file behind that of the one before, or finds its end."""
    same_size = _buffer(one) == _buffer(other)
    goes_on = one.op == "write" or (one.op in {"read", "getdents"} and same_size)
    return other.op == one.op and goes_on and one.result > 0


def _none(_: Sequence[Call]) -> Iterator[Step]:
    yield from ()


def _same_name(calls: Sequence[Call]) -> Iterator[Step]:
    yield calls[0].op


def _read(calls: Sequence[Call]) -> Iterator[Step]:
    read: dict[str, Any] = {"size": f"{_buffer(calls[0])}B"}
    if len(calls) > 1 and calls[-1].result == 0:
        yield {"read": {**read, "until": "end"}}
    elif len(calls) > 1:
        yield {"repeat": {"times": len(calls), "steps": [{"read": read}]}}
    else:
        yield {"read": read}


def _buffer(call: Call) -> int:
    """Return the bytes that a read asks for; of one that got fewer, as many as others ask for."""
    size = call.size or 0
    return size if call.result >= size else max(1 << (size - 1).bit_length(), LEAST_BUFFER)


def _write(calls: Sequence[Call]) -> Iterator[Step]:
    sizes = [each.size or 0 for each in calls]
    block = {"block": f"{max(sizes)}B"} if len(calls) > 1 else {}
    yield {"write": {"size": f"{sum(sizes)}B", **block}}


def _at_offset(calls: Sequence[Call]) -> Iterator[Step]:
    call = calls[0]
    yield {call.op: {"size": f"{call.size or 0}B", "offset": f"{call.offset or 0}B"}}


def _list(_: Sequence[Call]) -> Iterator[Step]:
    yield {"list": {"file": "file"}}


def _seek(calls: Sequence[Call]) -> Iterator[Step]:
    call = calls[0]
    whence, offset = call.flags or 0, call.offset or 0
    if whence < len(WHENCE) and offset >= 0 and call.result >= 0:
        place = {"offset": f"{offset}B"} if offset else {}
        yield {"lseek": {**place, **({"whence": WHENCE[whence]} if whence else {})}}


def _flock(calls: Sequence[Call]) -> Iterator[Step]:
    flags = calls[0].flags or 0
    kind = "unlock" if flags & UNLOCK else "shared" if flags & SHARED else "exclusive"
    yield {"flock": {"kind": kind, **_refused(kind, waits=not flags & NO_WAIT)}}


def _lock(calls: Sequence[Call]) -> Iterator[Step]:
    kind = LOCK_KINDS[min(calls[0].mode or 0, 2)]
    yield {"lock": {"kind": kind, **_refused(kind, waits=calls[0].flags in WAITING)}}


def _refused(kind: str, *, waits: bool) -> Mapping[str, Any]:
    return {} if waits or kind == "unlock" else {"wait": False, "expect": ["ok", "EAGAIN"]}


def _truncate(calls: Sequence[Call]) -> Iterator[Step]:
    yield {"truncate": {"file": "file", "size": f"{calls[0].size or 0}B"}}


def _send(calls: Sequence[Call]) -> Iterator[Step]:
    yield {"sendfile": {"size": f"{calls[0].size or 0}B", "until": "once"}}


STEPS: Mapping[str, Callable[[Sequence[Call]], Iterator[Step]]] = {
    **dict.fromkeys(("fsync", "fdatasync", "fstat", "fiemap", "close", "mmap_read"), _same_name),
    **dict.fromkeys(("pread", "pwrite"), _at_offset),
    "read": _read,
    "write": _write,
    "getdents": _list,
    "lseek": _seek,
    "flock": _flock,
    "fcntl_lock": _lock,
    "ftruncate": _truncate,
    "sendfile": _send,
}
"""Who writes the steps of calls on an open file, by the name of those that do the same."""


def _expected(call: Call) -> Mapping[str, Any]:
    """Return what may come out: as the files say, or the error that was recorded."""
    if call.result >= 0 or -call.result == errno.ENOENT:
        return {"expect": "layout"}
    return {"expect": errno.errorcode.get(-call.result, "any")}
