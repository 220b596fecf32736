"""The contract of the native module's part for traces: a stub alone, there is no such module."""

from collections.abc import Callable, Sequence

__all__ = [
    "trace_census",
    "trace_formats",
    "trace_history",
    "trace_import",
    "trace_is_applicable",
    "trace_labels",
    "trace_open",
]

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

def trace_census(folder: str, request: str | None) -> str:
    """What a trace, or the requests of one label in it, asks of a file system, as JSON.

    ``events``, ``threads``, ``requests``, ``span_ns``; ``ops``: by op ``count``, ``errors`` (by
    name) and ``bytes``; ``errors``, ``failing_lookups`` (ENOENT), ``fsyncs``, ``locks`` (taken),
    ``bytes`` (``read``, ``written``); distinct ``paths`` by label, and as ``files``,
    ``directories``, ``links``, ``others`` and ``missing``; ``own``: ``entries`` and ``bytes`` that
    each user of a replay has for itself of the tree before; ``pauses``: ``calls_ns``,
    ``pauses_ns`` and ``recorder_ns``; ``labels``: by label the number of ``requests``, their
    ``events`` and the ``mean`` of these per request. Errors as ``trace_open``.
    """

def trace_history(folder: str, row: int, limit: int) -> str:
    """Which events led to one, newest first, at most ``limit``: a JSON list.

    Each has ``row``, ``why`` (``path``, ``parent``: it changed a directory above, or
    ``description``: the same open file), ``thread``, ``start_ns``, ``op``, ``path``, ``to_path``,
    ``file``, ``to_file``, ``flags``, ``size``, ``offset``, ``result`` and ``error``.
    """

def trace_labels(folder: str) -> str:
    """The label of each path of a trace, as a JSON object, by the names of FORMAT.md."""
