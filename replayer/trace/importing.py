"""Imports logs into trace folders, with what a user can say about them."""

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from replayer import _native
from replayer.trace.errors import WRITABLE, TraceError, UnmadeTraceError, translated

__all__ = [
    "MARKER",
    "ComputeTime",
    "ImportOptions",
    "Probed",
    "Untraced",
    "Window",
    "explain_empty",
    "formats",
    "import_trace",
    "load_windows",
]

MARKER = "/replayer/request/"
"""A lookup of a path below this begins a request of that name; ``end`` ends it.

The path need not exist.
"""
WINDOWS_HINT = (
    "each line must have three tab-separated columns: start, end (seconds on the log's clock) and "
    "label"
)
NS = 1_000_000_000
LARGEST_NS = 2**62


class Probed(TypedDict):
    """What a program whose calls are known showed of the tracer."""

    call_ns: int
    """Added to each call's duration."""
    gap_ns: int
    """Added to each time between two calls."""
    spread: int
    """The mean of these times in thousandths of their 5 % quantile."""


class Untraced(TypedDict):
    """Runs of the recorded program without the tracer."""

    runs: int
    elapsed_ns: int
    """How long it took, the median."""
    waited_ns: NotRequired[int]
    """In so much of its time it had no CPU; left out where it works on several."""


class ComputeTime(TypedDict):
    """What the recorded program did beside its calls."""

    user_ns: int
    """CPU time that it used outside of the kernel: of a run without the tracer where some were
    made, the mean, and else while it was recorded."""
    calls: int
    """Recorded calls that it made meanwhile."""
    untraced: NotRequired[Untraced]
    """Where some were made."""


@dataclass(frozen=True)
class Window:
    """A span of time on the log's clock, and what it is called."""

    start_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True)
class ImportOptions:
    """What a log does not say by itself."""

    roots: Sequence[Path]
    """Directories as the traced machine named them; what lies below them is the trace."""
    aliases: Sequence[tuple[Path, Path]] = ()
    """Symlinks that lead to roots, and the roots: what is named by them belongs to the trace."""
    process_roots: Sequence[tuple[int, Path]] = ()
    """Where absolute paths of processes begin that have another root."""
    mounts: Sequence[tuple[int, Path]] = ()
    """Where names begin that a log shows of processes with other mounts: what none else has."""
    covers: Sequence[Path] = ()
    """Names below roots, as these have them, on which something else is mounted for them."""
    follows_links: bool = False
    """Symlinks outside of the roots are followed as they are on this machine."""
    format: str | None = None
    """Name of a format; found out if None."""
    manifest: Path | None = None
    """The files below the roots before the trace began."""
    directories: Sequence[tuple[int | None, Path]] = ()
    """Working directories at the begin, of one process or (None) of all others."""
    umasks: Sequence[tuple[int | None, int]] = ()
    """What creations leave out of their modes at the begin, of one process or (None) of all others;
    022 where nothing is said."""
    windows: Sequence[Window] = ()
    """When requests were made."""
    marker: str = MARKER
    call_stretch_ns: int | None = None
    """What the tracer added to each call's duration; estimated if None."""
    gap_stretch_ns: int | None = None
    """What the tracer added to each time between two calls; estimated if None."""
    probed: Probed | None = None
    """What a probe measured: taken where the log does not tell."""
    probe_method: str = ""
    """How the probe was made."""
    computed: ComputeTime | None = None
    """What bounds all times between calls together; not known if None."""
    keep: Literal["needed", "all"] = "needed"
    """Which files of the manifest the trace keeps."""
    strict: bool = False
    """Lines that are not understood are an error."""
    note: str = ""
    """Where the trace comes from, in the user's words."""


def formats() -> list[str]:
    """Return the names of the formats that can be imported."""
    return _native.trace_formats()


def import_trace(
    files: Sequence[Path],
    target: Path,
    options: ImportOptions,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Import logs of one capture into a new folder and return its trace.json.

    Args:
        files: Logs, plain or compressed with gzip, xz or zstd; several are merged by time.
        target: The folder to make; it appears whole or not at all.
        options: What the logs do not say.
        progress: Told the number of lines, some times a second.

    Raises:
        TraceError: What was asked cannot be meant, or a file is missing or damaged.
        UnmadeTraceError: The folder cannot be made there.
    """
    if not options.roots:
        message = "an import needs at least one --root"
        raise TraceError(message, hint="give --root DIR: the files below it are the trace")
    _check_place(target)
    logs = [str(file) for file in files]
    roots = [os.fsencode(root) for root in options.roots]
    with translated():
        text = _native.trace_import(logs, str(target), roots, _encode(options), progress)
    document: dict[str, Any] = json.loads(text)
    return document


def _check_place(target: Path) -> None:
    """Refuse a place that takes no trace before a long log is read."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        message = f"{target}: cannot be created: {error.strerror or error}"
        raise UnmadeTraceError(message, hint=WRITABLE) from error


def _encode(options: ImportOptions) -> str:
    manifest = options.manifest
    return json.dumps(
        {
            "format": options.format,
            "manifest": None if manifest is None else str(manifest),
            "directories": [[task, str(directory)] for task, directory in options.directories],
            "umasks": [list(pair) for pair in options.umasks],
            "aliases": [[str(link), str(root)] for link, root in options.aliases],
            "process_roots": [[task, str(root)] for task, root in options.process_roots],
            "mounts": [[task, str(begin)] for task, begin in options.mounts],
            "covers": [str(cover) for cover in options.covers],
            "follows_links": options.follows_links,
            "windows": [[item.start_ns, item.end_ns, item.label] for item in options.windows],
            "marker": options.marker,
            "call_ns": options.call_stretch_ns,
            "gap_ns": options.gap_stretch_ns,
            "probed": options.probed,
            "method": options.probe_method,
            "computed": options.computed,
            "keep": options.keep,
            "strict": options.strict,
            "note": options.note,
        }
    )


def explain_empty(counts: Mapping[str, Any]) -> tuple[str, str]:
    """Return why a trace with these counts holds no event, and a hint."""
    strange, lines = counts["lines_not_understood"], counts["lines"]
    if 2 * strange > lines:
        message = f"contains no event: {strange:,} of {lines:,} lines could not be parsed"
        return message, "choose another format with --format; the first of these lines are above"
    outside = sum(counts["calls_out_of_scope"].values())
    message = f"contains no event: {outside:,} calls are outside the roots"
    return message, "give --root as named on the traced machine"


def load_windows(path: Path) -> list[Window]:
    """Load a table of requests: start, end and label, tab-separated, one request a line.

    Raises:
        TraceError: The file cannot be read, or a line is no such row.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: {error}"
        raise TraceError(message, hint=WINDOWS_HINT) from error
    return [
        _parse_window(line, f"{path}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith(("#", "start\t"))
    ]


def _parse_window(line: str, place: str) -> Window:
    parts = line.split("\t", 2)
    try:
        start_ns, end_ns = (int(Decimal(part) * NS) for part in parts[:2])
        label = parts[2].strip()
    except (IndexError, InvalidOperation, OverflowError, ValueError):
        message = f"{place}: not a request: {line[:80]!r}"
        raise TraceError(message, hint=WINDOWS_HINT) from None
    if not (0 <= start_ns <= end_ns <= LARGEST_NS) or not label:
        message = (
            f"{place}: a request must have a label and must not end before its start, got "
            f"{line[:80]!r}"
        )
        raise TraceError(message, hint=WINDOWS_HINT)
    return Window(start_ns, end_ns, label)
