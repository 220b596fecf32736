"""What a command has started, also what it has let go of: to be ended with it.

A command that may ask for a password stays in the terminal's group of processes, with this one and
others, and so cannot be ended as a group. What is orphaned below this process meanwhile becomes its
child instead, and all is found by whose child it is.
"""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
ENDED = frozenset({b"Z", b"X"})

_LIBC = ctypes.CDLL(None)


class Descendants:
    """The processes below this one that come within a ``with``; those that are there do not count.

    What of them goes on afterwards is left alone.
    """

    def __init__(self) -> None:
        self._before = living_below(os.getpid())

    def __enter__(self) -> Self:
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def kill(self) -> bool:
        """Kill those that there are; returns whether there were any."""
        found = living_below(os.getpid()) - self._before
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):  # sudo's are root's
                os.kill(pid, signal.SIGKILL)
        return bool(found)


def living_below(root: int) -> set[int]:
    """Return the children of a process, theirs, and so on."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            state, parent = stat.read_bytes().rpartition(b")")[2].split()[:2]
            if state not in ENDED:
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found: set[int] = set()
    left = [root]
    while left:
        new = children.get(left.pop(), [])
        found.update(new)
        left.extend(new)
    return found
