"""The timed steps: which calls a step makes, how often, and when it is over.

A table beside the one in FORMAT.md: every op is the function of `os` or `calls` that makes it.
"""
# The names of the calls are the point here:
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH115, PTH116, PTH211

import os
import struct
from collections.abc import Callable

from tests.oracle import calls
from tests.oracle.content import written, written_pool
from tests.oracle.slots import Slot, checked_target, descriptor_of, path_of
from tests.oracle.user import ShortError, Step, User

# The operands of each op that are Draws, in the order in which they are drawn.
DRAWS = {
    "read": ["size"],
    "pread": ["size", "offset"],
    "pread_random": ["size"],
    "write": ["total", "first", "block"],
    "append": ["total", "first", "block"],
    "pwrite": ["size", "offset"],
    "pwrite_random": ["size"],
    "lseek": ["offset"],
    "ftruncate": ["size"],
    "fallocate": ["offset", "size"],
    "futimens": ["mtime_ns"],
    "fcntl_lock": ["offset", "size"],
    "fcntl_unlock": ["offset", "size"],
    "copy_file_range": ["size"],
    "sendfile": ["size"],
    "truncate": ["size"],
    "utimens": ["mtime_ns"],
    "setxattr": ["size"],
}
XATTR_BYTES = 64 * 1024

ACCESS_LIST = "system.posix_acl_access"
NOBODY = 2**32 - 1

Call = Callable[[], int | None]


def access_list(mode: int) -> bytes:
    """Give the access control list that says the same as a mode (linux/posix_acl_xattr.h)."""
    owner, group, other = (1, mode >> 6 & 7), (4, mode >> 3 & 7), (0x20, mode & 7)
    return struct.pack("<I" + "HHI" * 3, 2, *owner, NOBODY, *group, NOBODY, *other, NOBODY)


class Op:
    """A step that is about to be made: its draws are taken, nothing else has happened."""

    def __init__(self, user: User, step: Step) -> None:
        self.user = user
        self.step = step
        operands = DRAWS.get(step["op"], [])
        self.drawn = [user.drawn(step[key]) for key in operands if step.get(key) is not None]
        self.target = self._drawn_target()
        self.position = self._drawn_position()

    def _drawn_target(self) -> str:
        match self.step.get("target"):
            case {"parts": list(parts)}:
                return self.user.composed(parts)
            case str(text):
                return text
            case _:
                return self._operand("path").entry.link if "path" in self.step else ""

    def _drawn_position(self) -> int:
        if "align" not in self.step:
            return 0
        align, size, room = self.step["align"], self.drawn[0], self._operand("file").entry.size
        last = max(room - size, 0) // align
        return int(align * self.user.stream.below(last + 1))

    def _operand(self, key: str) -> Slot:
        return self.user.slots[self.step[key]]

    def path(self, key: str = "path") -> str:
        """Give a path operand, or raise EINVAL."""
        return path_of(self._operand(key))

    def file(self, key: str = "file") -> int:
        """Give a descriptor operand, or raise EBADF."""
        return descriptor_of(self._operand(key))

    def mode(self) -> int:
        """Give the mode operand, which is the bound entry's when there is none."""
        mode = self.step["mode"]
        slot = self._operand("path" if "path" in self.step else "file")
        return slot.entry.mode if mode is None else mode

    def mtime(self) -> int | None:
        """Give the time to set, None for now."""
        return self.drawn[0] if self.drawn else None

    def next_data(self, size: int) -> bytes:
        """Make what the user's next write writes."""
        number = self.user.writes
        self.user.writes += 1
        return written(self.user.document, self.user.number, number, size)


def run_call(user: User, step: Step) -> None:
    """Run a timed step: one op, or as many as it takes."""
    op = Op(user, step)
    match step["op"]:
        case "open":
            _open(op)
        case "read":
            _read(op)
        case "write" | "append":
            _write(op)
        case "sendfile" if step.get("once"):
            user.timed(step, lambda: SINGLE["sendfile"](op))
        case "getdents" | "sendfile":
            while user.timed(step, lambda: SINGLE[step["op"]](op)):
                pass
        case "copy_file_range":
            _copy(op)
        case name:
            user.timed(step, lambda: SINGLE[name](op))


def _open(op: Op) -> None:
    slot = op.user.slots[op.step["path"]]
    if slot.descriptor is not None:
        run_call(op.user, {"op": "close", "file": op.step["path"], "expect": ["ok"]})

    def opened() -> None:
        slot.descriptor = calls.open_beneath(op.path(), op.step["flags"], op.mode())

    op.user.timed(op.step, opened)


def _close(op: Op) -> None:
    descriptor = op.file()
    op.user.slots[op.step["file"]].descriptor = None
    os.close(descriptor)


def _copy(op: Op) -> None:
    if op.step.get("once"):
        op.user.timed(op.step, lambda: SINGLE["copy_file_range"](op))
        return
    descriptor = op.user.slots[op.step["file"]].descriptor
    held = 0 if descriptor is None else os.fstat(descriptor).st_size
    total = 0
    while copied := op.user.timed(op.step, lambda: SINGLE["copy_file_range"](op)):
        total += copied
        if total > held:
            break


def _read(op: Op) -> None:
    until_end, total = op.step["until_end"], 0
    required = op.user.slots[op.step["file"]].entry.size

    def read() -> int:
        moved = len(os.read(op.file(), op.drawn[0]))
        is_last = moved == 0 or not until_end
        if op.step["check_size"] and is_last and total + moved != required:
            raise ShortError(moved)
        return moved

    while (moved := op.user.timed(op.step, read)) and until_end:
        total += moved


def _write(op: Op) -> None:
    left, *pieces = op.drawn
    # The first one, if it is cut otherwise, and the others; none is empty, or the end never comes.
    piece, *rest = (max(each, 1) for each in pieces)
    is_closed = op.user.slots[op.step["file"]].descriptor is None

    def write() -> int:
        moved = os.write(op.file(), op.next_data(min(left, piece)))
        if moved == 0:
            raise ShortError(moved)
        return moved

    while (left or is_closed) and (moved := op.user.timed(op.step, write)):
        left -= moved
        piece = rest[0] if rest else piece


def _fcntl_lock(op: Op) -> None:
    kind, wait = op.step["kind"], op.step["wait"]
    calls.lock_range(op.file(), kind, op.drawn[0], op.drawn[1], wait=wait)


def _fcntl_unlock(op: Op) -> None:
    calls.lock_range(op.file(), "unlock", op.drawn[0], op.drawn[1], wait=False)


def _symlink(op: Op) -> None:
    path = op.path()
    os.symlink(checked_target(path, op.target), path)


def _setxattr(op: Op) -> None:
    value = written_pool(op.user.document)[: op.drawn[0]]
    if op.step["name"] == ACCESS_LIST:
        value = access_list(op.user.slots[op.step["path"]].entry.mode)
    os.setxattr(op.path(), op.step["name"], value)


SINGLE: dict[str, Callable[[Op], int | None]] = {
    "close": _close,
    "pread": lambda op: len(os.pread(op.file(), op.drawn[0], op.drawn[1])),
    "pread_random": lambda op: len(os.pread(op.file(), op.drawn[0], op.position)),
    "pwrite": lambda op: os.pwrite(op.file(), op.next_data(op.drawn[0]), op.drawn[1]),
    "pwrite_random": lambda op: os.pwrite(op.file(), op.next_data(op.drawn[0]), op.position),
    "lseek": lambda op: os.lseek(op.file(), op.drawn[0], op.step["whence"]),
    "fsync": lambda op: os.fsync(op.file()),
    "fdatasync": lambda op: os.fdatasync(op.file()),
    "fiemap": lambda op: calls.fiemap(op.file()),
    "fstat": lambda op: os.fstat(op.file()).st_size,
    "ftruncate": lambda op: os.ftruncate(op.file(), op.drawn[0]),
    "fallocate": lambda op: calls.fallocate(op.file(), op.step["mode"], op.drawn[0], op.drawn[1]),
    "fchmod": lambda op: os.fchmod(op.file(), op.mode()),
    "fchown": lambda op: os.fchown(op.file(), op.step["uid"], op.step["gid"]),
    "futimens": lambda op: calls.set_times(op.file(), op.mtime()),
    "flock": lambda op: calls.flock(op.file(), op.step["kind"], wait=op.step["wait"]),
    "flock_unlock": lambda op: calls.flock(op.file(), "unlock", wait=True),
    "fcntl_lock": _fcntl_lock,
    "fcntl_unlock": _fcntl_unlock,
    "getdents": lambda op: calls.getdents(op.file()),
    "copy_file_range": lambda op: os.copy_file_range(op.file(), op.file("to"), op.drawn[0]),
    "sendfile": lambda op: calls.sendfile(op.file(), op.drawn[0]),
    "mmap_read": lambda op: calls.mmap_read(op.file()),
    "stat": lambda op: os.stat(op.path()).st_size,
    "lstat": lambda op: os.lstat(op.path()).st_size,
    "access": lambda op: calls.access(op.path(), op.step["mode"]),
    "mkdir": lambda op: os.mkdir(op.path(), op.mode()),
    "rmdir": lambda op: os.rmdir(op.path()),
    "unlink": lambda op: os.unlink(op.path()),
    "rename": lambda op: calls.rename(op.path(), op.path("to"), op.step["flags"]),
    "link": lambda op: os.link(op.path(), op.path("to"), follow_symlinks=False),
    "symlink": _symlink,
    "readlink": lambda op: len(os.readlink(op.path())),
    "truncate": lambda op: os.truncate(op.path(), op.drawn[0]),
    "chmod": lambda op: os.chmod(op.path(), op.mode()),
    "chown": lambda op: os.chown(op.path(), op.step["uid"], op.step["gid"], follow_symlinks=False),
    "utimens": lambda op: calls.set_times(op.path(), op.mtime()),
    "getxattr": lambda op: len(os.getxattr(op.path(), op.step["name"])),
    "setxattr": _setxattr,
    "removexattr": lambda op: os.removexattr(op.path(), op.step["name"]),
    "listxattr": lambda op: len(os.listxattr(op.path())),
}
