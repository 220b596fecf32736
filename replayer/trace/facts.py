"""What replaying must know of a trace beforehand, read from trace.json; the fit is written there.

The events themselves are read by the engine alone.
"""

import hashlib
import json
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from replayer.paths import replace_content
from replayer.trace.errors import TraceError
from replayer.trace.reading import believed, load_trace, number
from replayer.trace.shipped import TRACE_JSON, find_trace

__all__ = ["MOST_PERCENT", "NO_CHECKSUM", "Fit", "TraceFacts", "keep_fit", "load_facts"]

MOST_PERCENT = 10_000
"""Chosen: pauses that are a hundred times too short were not recorded with this program."""
NO_CHECKSUM = "0" * 64
"""Stands for the checksum of trace.json while that is taken."""


@dataclass(frozen=True)
class TraceFacts:
    """A trace, as those see it who plan its replay.

    Attributes:
        name: As it was asked for.
        folder: Where it lies.
        sha256: Of its trace.json, which holds the checksums of everything else.
        events: How many.
        threads: Whose they are.
        span_ns: From the first event to the end of the last.
        untraced_ns: How long the command took without the tracer; None where nobody measured that.
        pauses_percent: What the pauses were fitted to, as a share of those recorded; None: they
            were not.
        requests: How often each label was recorded.
        blind_spots: What the log could not show, with counts.
        paths: How many paths have each label (``private``, ``shared mutable``…).
        files: Files that are there before.
        directories: Directories that are there before.
        size_bytes: Of these files, together.
    """

    name: str
    folder: Path
    sha256: str
    events: int
    threads: int
    span_ns: int
    untraced_ns: int | None = None
    pauses_percent: int | None = None
    requests: Mapping[str, int] = field(default_factory=dict)
    blind_spots: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    directories: int = 0
    size_bytes: int = 0

    @property
    def changes_files(self) -> bool:
        """Whether its events change what is there before."""
        return any(count for label, count in self.paths.items() if label != "shared read-only")


def load_facts(name: str, beside: Path) -> TraceFacts:
    """Find a trace, check it and return what must be known of it.

    Args:
        name: A folder, or the name of a shipped trace.
        beside: What a relative folder begins at.

    Raises:
        TraceError: There is none, or it is damaged or of another version.
    """
    folder = find_trace(name, beside)
    trace = load_trace(folder)
    with believed(folder):
        return _read(name, folder, trace)


def _read(name: str, folder: Path, trace: Mapping[str, Any]) -> TraceFacts:
    counts, tree, calibration = trace["counts"], trace["tree"], trace["calibration"]
    labels = ("shared read-only", "private", "shared mutable")
    untraced, fit = calibration.get("untraced"), calibration.get("fit")
    return TraceFacts(
        name=name,
        folder=folder,
        sha256=_checksum(folder / TRACE_JSON),
        events=number(counts["events"]),
        threads=number(counts["threads"]),
        span_ns=number(counts["span_ns"]),
        untraced_ns=number(untraced["elapsed_ns"]) if untraced else None,
        pauses_percent=number(fit["pauses_percent"]) if fit else None,
        requests={each["label"]: number(each["count"]) for each in trace["requests"]},
        blind_spots={spot: number(count) for spot, count in trace["blind_spots"].items()},
        paths={label: number(trace["labels"][label]) for label in labels},
        files=number(tree["files"]),
        directories=number(tree["directories"]),
        size_bytes=number(tree["bytes"]),
    )


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise TraceError(message) from error


@dataclass(frozen=True)
class Fit:
    """How a trace's pauses were fitted: so that a ``closed`` replay takes as long as the command.

    Attributes:
        pauses_percent: How long each pause is, as a share of what was recorded.
        filesystem: Where the replays ran, such as ``ext4``.
        rounds: How often each of them was made.
        asap_ns: What the replay took without pauses, median.
        closed_ns: What it took with the fitted ones, median.
    """

    pauses_percent: int
    filesystem: str
    rounds: int
    asap_ns: int
    closed_ns: int


def keep_fit(folder: Path, fit: Fit | None) -> None:
    """Write a fit into a trace's trace.json, or take it out.

    Raises:
        TraceError: The trace is damaged, or its folder cannot be written.
    """
    document = load_trace(folder)
    with believed(folder):
        document["calibration"].pop("fit", None)
    if fit is not None:
        document["calibration"]["fit"] = asdict(fit)
    document["checksum"] = NO_CHECKSUM
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    checksum = hashlib.sha256(text.encode()).hexdigest()
    content = text.replace(NO_CHECKSUM, checksum, 1).encode()
    path = folder / TRACE_JSON
    try:
        replace_content(path, content, stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        message = f"{folder}: its {TRACE_JSON} cannot be written: {error.strerror}"
        raise TraceError(
            message, hint="copy the trace to a folder that you can write to"
        ) from error
