"""The directories that a trace is about: made absolute, checked, and named as in the trace."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.measure.facts import filesystem_of
from replayer.measure.mountinfo import load_mountinfo

__all__ = ["Root", "check_roots", "doubts_of"]

# Not files that anybody stored: their sizes and contents are made while they are read.
MADE_BY_KERNEL = frozenset(
    {"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs"}
)
# Every program reads below these while it starts.
OF_THE_SYSTEM = (
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib64",
    "/root",
    "/run",
    "/sbin",
    "/usr",
    "/var",
)


@dataclass(frozen=True)
class Root:
    """A directory that is recorded.

    Attributes:
        given: As the user wrote it.
        absolute: Where it really is: links resolved.
        top: What the trace calls it: its last component, numbered where two are alike.
        file_system: Type of the file system that it lies on.
        alias: The absolute name it was given by, where that leads through a link.
    """

    given: str
    absolute: Path
    top: str
    file_system: str
    alias: Path | None = None


def check_roots(given: Sequence[Path]) -> tuple[Root, ...]:
    """Return the roots.

    Raises:
        ReplayerError: There is none, one is no directory, is ``/``, or lies in another.
    """
    if not given:
        raise ReplayerError(
            "a capture needs at least one --root",
            hint="name the directory of the files to record, such as --root /srv/www",
        )
    absolutes: list[Path] = []
    for path in given:
        absolute = _check(path)
        _refuse_nested(absolute, absolutes)
        absolutes.append(absolute)
    mounts = load_mountinfo()
    tops = _tops(absolutes)
    return tuple(
        Root(
            os.fspath(path), absolute, top, filesystem_of(absolute, mounts), _alias(path, absolute)
        )
        for path, absolute, top in zip(given, absolutes, tops, strict=True)
    )


def doubts_of(roots: Sequence[Root], target: Path) -> list[str]:
    """Return what is odd about the roots, a sentence each."""
    doubts = []
    for root in roots:
        text = str(root.absolute)
        if root.file_system in MADE_BY_KERNEL:
            doubts.append(f"{text} is a {root.file_system}: the kernel generates its files")
        if text in OF_THE_SYSTEM:
            doubts.append(
                f"{text} is a system directory: the trace will contain what all programs do"
            )
        if target.is_relative_to(root.absolute):
            doubts.append(f"{target} is inside the root {text}: later captures will list it")
    return doubts


def _alias(path: Path, absolute: Path) -> Path | None:
    named = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the link
    return None if named == absolute else named


def _check(path: Path) -> Path:
    try:
        absolute = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is a symlink loop"
        message = f"--root {path}: {reason}"
        raise ReplayerError(message, hint="it must be an existing directory") from error
    if not path.samefile(absolute):  # links of /proc are no texts: /proc/4711/root
        raise ReplayerError(
            f"--root {path}: no name of this machine leads there",
            hint="name a directory as this machine mounts it, and not through /proc/PID/root",
        )
    if not absolute.is_dir():
        raise ReplayerError(f"--root {path}: is not a directory", hint="name its directory")
    if absolute == Path("/"):
        raise ReplayerError(
            f"--root {path}: must be a directory below /",
            hint="name the directories of the application, not the whole system",
        )
    return absolute


def _refuse_nested(absolute: Path, others: Sequence[Path]) -> None:
    for other in others:
        if absolute.is_relative_to(other) or other.is_relative_to(absolute):
            message = f"--root {other} and --root {absolute}: one is inside the other"
            raise ReplayerError(message, hint="give only the outer one")


def _tops(absolutes: Sequence[Path]) -> list[str]:
    tops: list[str] = []
    for absolute in absolutes:
        free, number = absolute.name, 2
        while free in tops:
            free, number = f"{absolute.name}-{number}", number + 1
        tops.append(free)
    return tops
