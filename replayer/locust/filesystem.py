"""File calls for users written in Python: made, timed and recorded by their native threads.

The greenlet waits for the answer and the hub goes on. Data does not pass through Python: a write
sends so many bytes of the run's own data, a read says how many came. Paths are relative to the
run's folder and cannot leave it.
"""

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Literal, Self

from gevent import GreenletExit, getcurrent

from replayer._native import Outcome
from replayer.run.doorbell import Mailbox

LockKind = Literal["shared", "exclusive", "unlock"]

SLOTS = 16  # of plan format 1
BLOCK_BYTES = 128 * 1024  # chosen: what cp(1) writes at a time
READ, WRITE, READ_WRITE = 0, 1, 2
CREATE, EXCLUSIVE, TRUNCATE, APPEND, DIRECTORY = 0o100, 0o200, 0o1000, 0o2000, 0o200000
MODES = {
    "r": READ,
    "r+": READ_WRITE,
    "w": WRITE | CREATE | TRUNCATE,
    "w+": READ_WRITE | CREATE | TRUNCATE,
    "a": WRITE | CREATE | APPEND,
    "a+": READ_WRITE | CREATE | APPEND,
    "x": WRITE | CREATE | EXCLUSIVE,
    "x+": READ_WRITE | CREATE | EXCLUSIVE,
}
"""Python's modes as open(2) flags, in the numbers of plan format 1."""


class FileSystem:
    """The files of one user's target.

    Every method makes one call (or one for each block) and raises OSError, with errno and path,
    when it fails. A failed call is counted as an error, and fails the transaction that it is in.

    What is no call that a user may make is none: a path that is absolute, empty or has a ``..`` in
    it, a number out of bounds. It raises ValueError, and is counted nowhere.
    """

    def __init__(self, mailbox: Mailbox, user: int) -> None:
        self._mailbox = mailbox
        self._user = user
        self._free = set(range(SLOTS))
        self._failed = False
        self._within: str | None = None
        self._own = getcurrent()
        self._is_ended = False

    @contextmanager
    def transaction(self, name: str) -> Iterator[None]:
        """Measure what is done inside as one transaction; an exception inside fails it.

        Raises:
            RuntimeError: It begins inside another one: a user's transactions follow each other.
        """
        if self._within is not None:
            message = f"transaction {name!r} starts inside {self._within!r}: end that one first"
            raise RuntimeError(message)
        self._within = name
        self._failed = False
        try:
            self._ask({"begin": name})
            with self._failing(name):
                yield
            self._ask({"end": name, "failed": self._failed})
        finally:
            self._within = None

    @contextmanager
    def _failing(self, name: str) -> Iterator[None]:
        """End a transaction as failed if something is raised inside."""
        try:
            yield
        except Exception:
            self._ask({"end": name, "failed": True})
            raise
        except GreenletExit:
            raise  # of a user who is ended: the engine ends what it does
        except BaseException:  # a Timeout of gevent's: who waits no longer does not wait for this
            self._tell({"end": name, "failed": True})
            raise

    def open(self, path: str, mode: str = "r", permissions: int = 0o644) -> "File":
        """Open a file in one of Python's modes: r, w, a or x, each also with a +."""
        flags = MODES.get(mode.replace("b", ""))
        if flags is None:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
        return self.open_flags(path, flags, permissions)

    def open_flags(self, path: str, flags: int, permissions: int = 0o644) -> "File":
        """Open a file with open(2) flags."""
        if not self._free:
            raise OSError(errno.EMFILE, f"a user may have at most {SLOTS} open files", path)
        slot = min(self._free)
        self._free.remove(slot)  # at once: another greenlet of the user may open a file meanwhile
        try:
            self.call("open", path, path=path, slot=slot, flags=flags, mode=permissions)
        except BaseException:
            self._free.add(slot)  # the engine closes what it may hold when it is filled anew
            raise
        return File(self, path, slot)

    def exists(self, path: str) -> bool:
        """Whether there is something at a path (access(2)); its absence is no error."""
        absent = ("ENOENT", "ENOTDIR")
        found = self._answer("access", path, {"path": path, "mode": os.F_OK}, ("ok", *absent))
        return found.outcome not in absent

    def stat(self, path: str) -> int:
        """Return the size."""
        return self.call("stat", path, path=path)

    def lstat(self, path: str) -> int:
        """Return the size, of a symlink itself."""
        return self.call("lstat", path, path=path)

    def listdir(self, path: str) -> None:
        """Open a directory, read it to its end and close it."""
        with self.open_flags(path, DIRECTORY, 0) as directory:
            directory.list()

    def mkdir(self, path: str, permissions: int = 0o755) -> None:
        """Make a directory."""
        self.call("mkdir", path, path=path, mode=permissions)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        self.call("rmdir", path, path=path)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.call("unlink", path, path=path)

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, replacing what has it."""
        self.call("rename", path, path=path, to=to, flags=0)

    def link(self, path: str, to: str) -> None:
        """Give a file a second name."""
        self.call("link", path, path=path, to=to)

    def symlink(self, target: str, path: str) -> None:
        """Make a symlink; its target is relative and stays inside the run's folder."""
        self.call("symlink", path, path=path, target=target)

    def readlink(self, path: str) -> None:
        """Read a symlink."""
        self.call("readlink", path, path=path)

    def truncate(self, path: str, size: int) -> None:
        """Cut or stretch a file."""
        self.call("truncate", path, path=path, size=_const(size))

    def chmod(self, path: str, permissions: int) -> None:
        """Set permission bits."""
        self.call("chmod", path, path=path, mode=permissions)

    def call(self, op: str, shown: str, **operands: object) -> int:
        """Make one call of plan format 1 and return its value.

        Args:
            op: Its name in the format.
            shown: The path that a failure names.
            operands: As in the format; ``path`` and ``to`` are paths, ``file`` is a slot.

        Raises:
            OSError: It failed.
            ValueError: It is none that may be made.
        """
        return self._answer(op, shown, operands, ("ok",)).value

    def close_slot(self, slot: int, shown: str) -> None:
        """Close a file; its slot is free whatever comes of that, as in close(2).

        Raises:
            OSError: It failed.
        """
        self._free.add(slot)  # a user's commands are done in turn: no other file is in it before
        self.call("close", shown, file=slot)

    def leave_slot(self, slot: int) -> None:
        """Have a file closed without waiting for it."""
        self._free.add(slot)
        self._mailbox.tell(self._user, _step("close", {"file": slot}, ("ok",)))

    def _answer(
        self, op: str, shown: str, operands: dict[str, object], expect: Sequence[str]
    ) -> Outcome:
        try:
            answer = self._wait_for(_step(op, operands, expect))
        except ValueError as error:  # no kernel has said it: no OSError
            raise ValueError(f"{op}: {error}") from error
        if not answer.expected:
            self._failed = True
            number = _number(answer.outcome)
            raise OSError(number, f"{op}: {os.strerror(number)}", shown)
        return answer

    def _ask(self, command: dict[str, object]) -> None:
        self._wait_for(json.dumps(command).encode())

    def _wait_for(self, command: bytes) -> Outcome:
        """Have a command done; once the user's greenlet was ended here, nothing more is.

        A task may keep that to itself (``except:``), and Locust ends a greenlet once.
        """
        if self._is_ended:
            raise GreenletExit
        try:
            return self._mailbox.ask(self._user, command)
        except GreenletExit:
            self._is_ended = getcurrent() is self._own
            raise

    def _tell(self, command: dict[str, object]) -> None:
        self._mailbox.tell(self._user, json.dumps(command).encode())


class File:
    """An open file of one user; a context manager that closes it.

    A block, what one call reads or writes, has at most 1 MiB (read) or 4 MiB (written), or as much
    as the largest read or write of the scenario beside it; a larger one raises ValueError.
    """

    def __init__(self, files: FileSystem, path: str, slot: int) -> None:
        self._files = files
        self._slot: int | None = slot
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._slot is None or (kind is not None and issubclass(kind, GreenletExit)):
            return  # of a user who is ended: the engine closes what it has open
        if kind is None or issubclass(kind, Exception):
            self.close()
        else:  # a Timeout of gevent's
            slot, self._slot = self._slot, None
            self._files.leave_slot(slot)

    def close(self) -> None:
        """Close it; a second time is an error, as in C."""
        if self._slot is None:
            raise OSError(errno.EBADF, "close: the file is closed", self.path)
        slot, self._slot = self._slot, None
        self._files.close_slot(slot, self.path)

    def read(self, size: int, block: int = BLOCK_BYTES) -> int:
        """Read at most so many bytes, a block a call; returns how many came, 0 at the end."""
        how = {"until_end": False, "check_size": False}
        return _in_blocks(size, block, lambda _, part: self._call("read", size=_const(part), **how))

    def pread(self, size: int, offset: int, block: int = BLOCK_BYTES) -> int:
        """Read at a place, a block a call; returns how many bytes came."""
        return self._at("pread", size, offset, block)

    def write(self, size: int, block: int = BLOCK_BYTES) -> int:
        """Write so many bytes, a block a call; returns how many all calls together wrote."""
        _check_bounds(size, block)
        return self._call("write", total=_const(size), block=_const(block))

    def pwrite(self, size: int, offset: int, block: int = BLOCK_BYTES) -> int:
        """Write at a place, a block a call; returns how many bytes were written."""
        return self._at("pwrite", size, offset, block)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a place, from the end or the present one also backwards; returns it."""
        return self._call("lseek", offset=offset, whence=whence)

    def list(self) -> None:
        """Read a directory to its end."""
        self._call("getdents")

    def fsync(self) -> None:
        """Have data and metadata reach the server's storage."""
        self._call("fsync")

    def fdatasync(self) -> None:
        """Have data reach the server's storage."""
        self._call("fdatasync")

    def stat(self) -> int:
        """Return the size."""
        return self._call("fstat")

    def truncate(self, size: int) -> None:
        """Cut or stretch it."""
        self._call("ftruncate", size=_const(size))

    def flock(self, kind: LockKind, *, wait: bool = True) -> None:
        """Lock or unlock the whole file."""
        if kind == "unlock":
            self._call("flock_unlock")
        else:
            self._call("flock", kind=kind, wait=wait)

    def lock(self, kind: LockKind, offset: int = 0, size: int = 0, *, wait: bool = True) -> None:
        """Lock or unlock a range, as an open file description does; size 0: to the end."""
        span = {"offset": _const(offset), "size": _const(size)}
        if kind == "unlock":
            self._call("fcntl_unlock", **span)
        else:
            self._call("fcntl_lock", kind=kind, wait=wait, **span)

    def _at(self, op: str, size: int, offset: int, block: int) -> int:
        return _in_blocks(
            size,
            block,
            lambda begin, part: self._call(op, size=_const(part), offset=_const(offset + begin)),
        )

    def _call(self, op: str, **operands: object) -> int:
        if self._slot is None:
            raise OSError(errno.EBADF, f"{op}: the file is closed", self.path)
        return self._files.call(op, self.path, file=self._slot, **operands)


def _in_blocks(size: int, block: int, call: Callable[[int, int], int]) -> int:
    """Return how many bytes calls move that are made with the begin and the length of each block.

    The first that moves less is the last; of no bytes there is one call, as in C.

    Raises:
        ValueError: A block has no bytes, or there are less than none.
    """
    _check_bounds(size, block)
    moved = 0
    for begin in range(0, max(size, 1), block):
        part = min(block, size - begin)
        came = call(begin, part)
        moved += came
        if came < part:
            break
    return moved


def _number(outcome: str) -> int:
    """Return the errno of an outcome."""
    if outcome == "cancelled":
        return errno.ECANCELED
    return getattr(errno, outcome, errno.EIO)  # SHORT has no number of its own


def _check_bounds(size: int, block: int) -> None:
    if size < 0:
        raise ValueError(f"size must be at least 0 bytes, got {size}")
    if block < 1:
        raise ValueError(f"block must be at least 1 byte, got {block}")


def _const(value: int) -> dict[str, int]:
    return {"const": value}


def _step(op: str, operands: dict[str, object], expect: Sequence[str]) -> bytes:
    return json.dumps({"do": "call", "op": op, **operands, "expect": expect}).encode()
