"""What a trace, or one of its requests, does: its ops, errors and bytes, counted natively."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from replayer.trace.reading import load_census

__all__ = ["OpCensus", "Pauses", "TraceCensus", "take_census"]


@dataclass(frozen=True)
class OpCensus:
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
class TraceCensus:
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
    ops: Mapping[str, OpCensus]
    entries: int
    grown_bytes: int
    own_entries: int
    own_bytes: int
    pauses: Pauses


@lru_cache(maxsize=256)
def take_census(folder: Path, request: str | None) -> TraceCensus:
    """Count a whole trace, or all its requests of a label.

    Raises:
        TraceError: The trace is damaged, or has no such request.
    """
    found = load_census(folder, request)
    performances = 1 if request is None else max(int(found["requests"]), 1)
    pauses = found["pauses"]
    made_ns = pauses["recorder_ns"]
    return TraceCensus(
        performances=performances,
        events=found["events"],
        threads=found["threads"],
        ops={
            op: OpCensus(each["count"], sum(each["errors"].values()), each["bytes"])
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
