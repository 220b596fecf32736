"""The one place where the trace room meets the native module."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from replayer.engine import _native
from replayer.trace.errors import TraceError

__all__ = [
    "census",
    "formats",
    "history",
    "import_logs",
    "is_applicable",
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
    """Return a trace's census, or that of the requests of one label, as JSON."""
    with _translated():
        return _native.trace_census(str(folder), request)


def history(folder: Path, row: int, limit: int) -> str:
    """Return the events that led to one, newest first, as JSON."""
    with _translated():
        return _native.trace_history(str(folder), row, limit)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        message, hint = error.args
        raise TraceError(message, hint=hint) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise TraceError(message) from error
