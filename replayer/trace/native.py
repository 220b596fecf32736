"""The one place where the trace room meets the native module."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from replayer import _native
from replayer.trace.errors import TraceError

__all__ = [
    "census",
    "check_order",
    "formats",
    "history",
    "import_logs",
    "is_applicable",
    "labels",
    "open_folder",
]


def formats() -> list[str]:
    """Return the names of the formats that can be imported."""
    return _native.trace_formats()


def is_applicable(name: str, head: bytes) -> str:
    """Return ``yes``, ``no`` or ``need more`` for a format and the beginning of a file."""
    with _translated():
        return _native.trace_is_applicable(name, head)


def import_logs(
    files: Sequence[Path],
    target: Path,
    roots: Sequence[bytes],
    options: str,
    progress: Callable[[int], None],
) -> str:
    """Import logs into a folder and return the text of its trace.json."""
    with _translated():
        return _native.trace_import(
            [str(file) for file in files], str(target), list(roots), options, progress
        )


def open_folder(folder: Path) -> str:
    """Return the text of a trace's trace.json once its version and checksums have been checked."""
    with _translated():
        return _native.trace_open(str(folder))


def census(folder: Path, request: str | None) -> str:
    """Return what a trace, or its requests of a label, does: JSON."""
    with _translated():
        return _native.trace_census(str(folder), request)


def history(folder: Path, row: int, limit: int) -> str:
    """Return the events before a row that touched the same things, newest first: JSON."""
    with _translated():
        return _native.trace_history(str(folder), row, limit)


def labels(folder: Path) -> str:
    """Return the label of each path of a trace: JSON."""
    with _translated():
        return _native.trace_labels(str(folder))


def check_order(folder: Path, log: Path) -> str:
    """Hold the event log of a replay against the order of its trace: JSON."""
    with _translated():
        return _native.trace_check_order(str(folder), str(log))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        message, hint = error.args if len(error.args) == 2 else (str(error), "")  # noqa: PLR2004 - a pair
        raise TraceError(message, hint=hint) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise TraceError(message) from error
