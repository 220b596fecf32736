"""Imports logs into trace folders, with what a user can say about them."""

import errno
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from replayer.trace import native
from replayer.trace.errors import WRITABLE, TraceError, UnmadeTraceError
from replayer.trace.windows import Window

__all__ = ["MARKER", "Computed", "ImportOptions", "Probed", "Untraced", "import_trace"]

MARKER = "/replayer/request/"
"""A lookup of a path below this begins a request of that name; ``end`` ends it.

The path need not exist.
"""


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


class Computed(TypedDict):
    """What the recorded program did beside its calls."""

    user_ns: int
    """CPU time that it used outside of the kernel: of a run without the tracer where some were
    made, the mean, and else while it was recorded."""
    calls: int
    """Recorded calls that it made meanwhile."""
    untraced: NotRequired[Untraced]
    """Where some were made."""


@dataclass(frozen=True)
class ImportOptions:
    """What a log does not say by itself."""

    roots: Sequence[Path]
    """Directories as the traced machine named them; what lies below them is the trace."""
    aliases: Sequence[tuple[Path, Path]] = ()
    """Symlinks that lead to roots, and the roots: what is named by them belongs to the trace."""
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
    computed: Computed | None = None
    """What bounds all times between calls together; not known if None."""
    keep: Literal["needed", "all"] = "needed"
    """Which files of the manifest the trace keeps."""
    strict: bool = False
    """Lines that are not understood are an error."""
    note: str = ""
    """Where the trace comes from, in the user's words."""


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
        message = "an import needs at least one root"
        raise TraceError(message, hint="give --root DIR: what lies below it is the trace")
    _check_place(target)
    roots = [os.fsencode(root) for root in options.roots]
    text = native.import_logs(files, target, roots, _encode(options), progress)
    return cast("dict[str, Any]", json.loads(text))


def _check_place(target: Path) -> None:
    """Refuse a place that takes no trace before a long log is read."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        message = f"{target}: cannot be made: {error.strerror or error}"
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
