"""Opens and reads trace folders; the native module checks and counts, and answers in JSON."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from replayer import _native
from replayer.trace.errors import TraceError, translated
from replayer.trace.shipped import TRACE_JSON

__all__ = [
    "OpStatistics",
    "Pauses",
    "TraceStatistics",
    "believed",
    "check_order",
    "count_trace",
    "load_history",
    "load_statistics",
    "load_trace",
    "number",
]

MOST = 2**63 - 1
"""What a table could hold."""


def load_trace(folder: Path) -> dict[str, Any]:
    """Open a trace folder, check its version and checksums, and return its trace.json.

    Raises:
        TraceError: It is no trace, of another version, or damaged.
    """
    with translated():
        document: dict[str, Any] = json.loads(_native.trace_open(str(folder)))
    return document


def load_statistics(folder: Path, request: str | None = None) -> dict[str, Any]:
    """Count what a trace, or the requests of one label in it, asks of a file system.

    ``FORMAT.md`` names the keys.

    Raises:
        TraceError: It is no trace, is damaged, or has no request of this label.
    """
    with translated():
        found: dict[str, Any] = json.loads(_native.trace_statistics(str(folder), request))
    return found


def load_history(folder: Path, row: int, limit: int = 20) -> list[dict[str, Any]]:
    """Return the events that led to the one in ``row``, newest first.

    Each has the columns of ``FORMAT.md``, ``row``, ``error`` and ``why``: ``path``, ``parent`` (it
    changed a directory above) or ``description`` (the same open file).

    Raises:
        TraceError: It is no trace, is damaged, or has no such row.
    """
    with translated():
        events: list[dict[str, Any]] = json.loads(_native.trace_history(str(folder), row, limit))
    return events


def check_order(folder: Path, log: Path) -> dict[str, Any]:
    """Compare the event log of a replay, its directory, with the order of its trace.

    Returns counts ``performances``, ``events``, ``edges``, ``violated``, and ``first``: a
    violation, or None.

    Raises:
        TraceError: The trace or the log cannot be read.
    """
    with translated():
        report: dict[str, Any] = json.loads(_native.trace_check_order(str(folder), str(log)))
    return report


@dataclass(frozen=True)
class OpStatistics:
    """One op: how many, how many of them were recorded to fail, bytes moved."""

    count: int
    errors: int
    size_bytes: int


@dataclass(frozen=True)
class Pauses:
    """What calls and the time between them took, as recorded: mean of a performance.

    Attributes:
        calls_ns: In calls, on all threads together.
        pauses_ns: Between them, without what is known to be the recorder's.
        recorder_ns: How much of these pauses the recorder may have made; None: it stops nobody, or
            the pauses are known from runs without it.
    """

    calls_ns: int
    pauses_ns: int
    recorder_ns: int | None


@dataclass(frozen=True)
class TraceStatistics:
    """What is done in all that was counted.

    Attributes:
        performances: How many requests were counted; 1 for a whole trace.
        events: How many.
        threads: Most that one performance has.
        ops: By name.
        entries: Distinct files, directories and others of which something succeeded.
        grown_bytes: Most that the files of all performances together grow by.
        own_entries: Of the trace's tree before, how many entries each user has for itself.
        own_bytes: Of the files among these, together.
        pauses: The time in calls and between them.
    """

    performances: int
    events: int
    threads: int
    ops: Mapping[str, OpStatistics]
    entries: int
    grown_bytes: int
    own_entries: int
    own_bytes: int
    pauses: Pauses


@lru_cache(maxsize=256)
def count_trace(folder: Path, request: str | None) -> TraceStatistics:
    """Count a whole trace, or all its requests of a label.

    Raises:
        TraceError: The trace is damaged, or has no such request.
    """
    found = load_statistics(folder, request)
    performances = 1 if request is None else max(int(found["requests"]), 1)
    pauses = found["pauses"]
    made_ns = pauses["recorder_ns"]
    return TraceStatistics(
        performances=performances,
        events=found["events"],
        threads=found["threads"],
        ops={
            op: OpStatistics(each["count"], sum(each["errors"].values()), each["bytes"])
            for op, each in found["ops"].items()
        },
        entries=sum(found[kind] for kind in ("files", "directories", "links", "others")),
        grown_bytes=found["grown_bytes"],
        own_entries=found["own"]["entries"],
        own_bytes=found["own"]["bytes"],
        pauses=Pauses(
            calls_ns=round(pauses["calls_ns"] / performances),
            pauses_ns=round(pauses["pauses_ns"] / performances),
            recorder_ns=None if made_ns is None else round(made_ns / performances),
        ),
    )


@contextmanager
def believed(folder: Path) -> Iterator[None]:
    """Refuse a trace whose trace.json lacks what is looked up meanwhile, or has it otherwise.

    Raises:
        TraceError: It does.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"{folder / TRACE_JSON}: has an invalid value: {error!r}"
        raise TraceError(message, hint="the trace is damaged: import or copy it again") from error


def number(value: object) -> int:
    """Return a count or a time of a trace.json.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, int) and 0 <= value <= MOST:
        return value
    message = f"must be a number from 0 to {MOST}, got {value!r:.40}"
    raise ValueError(message)
