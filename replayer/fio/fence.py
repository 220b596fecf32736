"""A fence around fio: it changes nothing but what lies in its folder, wherever links there lead.

By Landlock, see landlock(7), where the kernel has it (Linux 5.13) and nothing forbids its calls.
Reading stays possible anywhere: a program needs its libraries. Which options a job file may have is
decided next door (checking).
"""

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

# The same on every architecture, see asm-generic/unistd.h.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
PATH_BENEATH = 1  # LANDLOCK_RULE_PATH_BENEATH
PR_SET_NO_NEW_PRIVS = 38  # prctl(2)

WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
MAKE_AND_REMOVE = 0b1_1111_1111 << 4  # of directories, files and all other kinds
REFER = 1 << 13
SINCE = {1: WRITE_FILE | MAKE_AND_REMOVE, 2: REFER, 3: TRUNCATE}
"""What can be forbidden, by the version of Landlock that brought it, see linux/landlock.h."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALL, _PRCTL = _LIBC.syscall, _LIBC.prctl


def find_confinement() -> Literal["fenced", "checked"]:
    """Return what keeps fio in a folder: the kernel, or its checked job file alone."""
    return "fenced" if _version() else "checked"


class Fence:
    """What a process shall be kept in; where the kernel cannot, it is only started there."""

    def __init__(self, folder: int, rules: int | None) -> None:
        self._folder = folder
        self._rules = rules

    def enter(self) -> None:
        """Go to the folder and never get out again; called in the child, for system calls only.

        Raises:
            OSError: The kernel refuses.
        """
        os.fchdir(self._folder)
        if self._rules is None:
            return
        _PRCTL(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _SYSCALL(RESTRICT_SELF, self._rules, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")


@contextmanager
def fence_around(folder: Path, devices: Sequence[Path] = ()) -> Iterator[Fence]:
    """Make a fence around a folder, with devices that may be written to besides.

    Raises:
        OSError: The folder is not there, a link has taken its name, or the kernel refuses rules
            though it has them.
    """
    opened = [os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)]
    try:
        opened += [os.open(device, os.O_PATH | os.O_CLOEXEC) for device in devices]
        rules = _make_rules(opened[0], opened[1:])
        if rules is not None:
            opened.append(rules)
        yield Fence(opened[0], rules)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _make_rules(folder: int, devices: Sequence[int]) -> int | None:
    """Return a set of rules; None where the kernel has no Landlock."""
    version = _version()
    if not version:
        return None
    handled = sum(rights for since, rights in SINCE.items() if since <= version)
    rules = int(_SYSCALL(CREATE_RULESET, struct.pack("=Q", handled), 8, 0))
    if rules < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    _allow(rules, folder, handled)
    for device in devices:
        _allow(rules, device, handled & (WRITE_FILE | TRUNCATE))
    return rules


def _version() -> int:
    """Return which version of Landlock the kernel has; 0: none, or its calls are forbidden."""
    return max(int(_SYSCALL(CREATE_RULESET, None, 0, ASK_VERSION)), 0)


def _allow(rules: int, place: int, rights: int) -> None:
    rule = struct.pack("=Qi", rights, place)
    if _SYSCALL(ADD_RULE, rules, PATH_BENEATH, rule, 0):
        raise OSError(ctypes.get_errno(), "landlock_add_rule")
