"""strace's log while it grows: its size, how many calls it may hold, and a bound on its disk space.

strace is never told to stop when the bound is reached: under its filter the recorded processes
would be left unable to make calls. What lies behind the bound is given back to the disk as it
comes (a hole in the file), and cut off at the end. The only text that is read is line breaks, the
number at the very beginning, and whether that process was killed.
"""

import ctypes
import errno
import mmap
import os
from pathlib import Path

from replayer.capture.staging import RESERVE_BYTES, free_bytes

__all__ = ["StraceLog"]

SAMPLE_BYTES = 64 << 10
_KILLED = b" +++ killed by SIG"
_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02  # fallocate(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


class StraceLog:
    """The file that strace writes.

    Attributes:
        path: Where it is.
        limit_bytes: What of it is kept.
        trouble: Why it could not be bounded when that was tried last; None if it could.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.trouble: str | None = None
        self._first: int | None = None
        self._seen = 0
        self._counted = 0
        self._events = 0.0
        self._cleared = 0

    @property
    def size_bytes(self) -> int:
        """What has been written so far, behind the bound too."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def is_full(self) -> bool:
        """Whether no more of it is kept: the bound has been reached, or cannot be held."""
        return self.trouble is not None or self.size_bytes > self.limit_bytes

    @property
    def reason(self) -> str:
        """Why it is full, in words to follow its name."""
        if self.trouble is not None:
            return f"can no longer be limited ({self.trouble})"
        return f"has reached {self.limit_bytes:,} bytes"

    def first_process(self) -> int | None:
        """Return the process of the first line, once it is there; it stays known."""
        if self._first is None:
            number, blank, _ = self._head().partition(b" ")
            self._first = int(number) if blank and number.isdigit() else None
        return self._first

    def _head(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(32)
        except OSError:
            return b""

    def tells_of_the_commands_death(self) -> bool:
        """Tell whether the log says that a signal ended the first process, or is cut off."""
        command = self.first_process()
        if command is None or self.is_full:
            return self.is_full
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
        ):
            # What it started may have gone on for long: the line may be far from the end.
            end = text.rfind(_KILLED)
            while end >= 0:
                begin = text.rfind(b"\n", 0, end) + 1
                if text[begin:end].startswith(b"%d " % command):
                    return True
                end = text.rfind(_KILLED, 0, begin)
        return False

    def count_calls(self) -> tuple[int, int]:
        """Return how many calls it tells of, and of how many tasks.

        Calls that others interrupted have two lines.
        """
        count, tasks = 0, set()
        with self.path.open("rb") as file:
            for line in file:
                count += b" resumed>" not in line
                tasks.add(line.partition(b" ")[0])
        return count, len(tasks)

    def estimate_events(self) -> int:
        """Return about how many lines were written, from the length of the latest ones."""
        size = self.size_bytes
        grown = size - self._counted
        if grown > 0:
            self._events += grown / self._line_bytes(size, min(grown, SAMPLE_BYTES))
            self._counted = size
        return int(self._events)

    def bound(self) -> None:
        """Give back the disk space behind the bound; it lies lower where the disk fills up."""
        try:
            self._bound()
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
        else:
            self.trouble = None

    def _bound(self) -> None:
        size = self.size_bytes
        if size < self._seen:  # somebody has removed it, and strace writes on where nobody sees it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self._seen = size
        if size <= self.limit_bytes and free_bytes(self.path.parent) < RESERVE_BYTES:
            self.limit_bytes = size
        if size > max(self.limit_bytes, self._cleared):
            begin = max(self.limit_bytes, self._cleared - self._cleared % SAMPLE_BYTES)
            _punch(self.path, begin, size - begin)
            self._cleared = size

    def cut(self) -> int:
        """Take off what lies behind the bound, up to a whole line; return how many bytes went."""
        size = self.size_bytes
        if size <= self.limit_bytes:
            return 0
        with self.path.open("r+b") as file:
            begin = max(0, self.limit_bytes - SAMPLE_BYTES)
            file.seek(begin)
            end = begin + file.read(self.limit_bytes - begin).rfind(b"\n") + 1
            file.truncate(end)
        return size - end

    def _line_bytes(self, end: int, length: int) -> float:
        with self.path.open("rb") as file:
            file.seek(end - length)
            lines = file.read(length).count(b"\n")
        return length / max(lines, 1)


def _punch(path: Path, begin: int, length: int) -> None:
    """Free a range of a file; where the file system cannot, the file goes on growing."""
    with path.open("r+b") as file:
        _LIBC.fallocate(
            file.fileno(), _KEEP_SIZE_PUNCH_HOLE, ctypes.c_long(begin), ctypes.c_long(length)
        )
