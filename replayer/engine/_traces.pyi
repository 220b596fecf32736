"""The contract of the native module's part for traces: a stub alone, there is no such module."""

from collections.abc import Callable, Sequence

__all__ = ["trace_formats", "trace_import", "trace_is_applicable", "trace_open"]

def trace_formats() -> list[str]:
    """Names of the formats that logs can be imported from."""

def trace_is_applicable(name: str, head: bytes) -> str:
    """``yes``, ``no`` or ``need more`` of a format and a beginning; ValueError: (message, hint)."""

def trace_import(
    files: Sequence[str],
    target: str,
    roots: Sequence[bytes],
    options: str,
    progress: Callable[[int], None],
) -> str:
    """Import logs into a new trace folder, whole or not at all; the text of its trace.json.

    ``options`` is JSON, see replayer/trace/importing.py. ``progress`` is told the number of lines
    ten times a second; what it raises stops the import. OSError: the kernel; ValueError:
    (message, hint).
    """

def trace_open(directory: str) -> str:
    """The text of trace.json, after version and checksums are checked; errors as above."""
