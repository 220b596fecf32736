"""The library of traces as the page shows it: what each holds, and what it cannot show.

Read from trace.json alone; checking the tables and replaying them is the business of others.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from replayer.measure.units import format_bytes, format_count, format_time_ns
from replayer.trace import shipped_traces

__all__ = ["LibraryEntry", "list_traces"]

TRACE_JSON = "trace.json"
MOST_TRACES = 200
"""Chosen: more than fit on a page that is read."""
MOST_NAMED = 8
"""Chosen: ops and requests that say what a trace is like."""


@dataclass(frozen=True)
class LibraryEntry:
    """One trace, in words.

    Attributes:
        name: Such as ``wordpress/front-warm``.
        note: What was recorded, and how.
        facts: Label and text of each thing to know.
        ops: The op mix: name, count and share of the commonest one, of one at most.
    """

    name: str
    note: str
    facts: tuple[tuple[str, str], ...]
    ops: tuple[tuple[str, int, float], ...]


def list_traces() -> list[LibraryEntry]:
    """Return every trace that comes with the program, by name; damaged ones are left out."""
    found = islice(shipped_traces().items(), MOST_TRACES)
    entries = (_read(folder / TRACE_JSON, name) for name, folder in found)
    return [entry for entry in entries if entry is not None]


def _read(path: Path, name: str) -> LibraryEntry | None:
    try:
        trace = json.loads(path.read_bytes())
        return LibraryEntry(
            name, trace["origin"]["note"], _facts(trace), _ops(trace["counts"]["ops"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _facts(trace: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    counts, tree = trace["counts"], trace["tree"]
    return (
        (
            "events",
            (
                f"{format_count(counts['events'])} of {format_count(counts['threads'])} "
                f"thread{'s' * (counts['threads'] != 1)} over {format_time_ns(counts['span_ns'])}"
            ),
        ),
        (
            "data",
            (
                f"{format_bytes(counts['bytes_read'])} read, "
                f"{format_bytes(counts['bytes_written'])} written"
            ),
        ),
        (
            "tree before",
            (
                f"{format_count(tree['files'])} files, {format_count(tree['directories'])} "
                f"directories, {format_bytes(tree['bytes'])}"
            ),
        ),
        ("errors", _counted(counts["errors"]) or "none"),
        ("requests", _requests(trace)),
        ("blind spots", _blind(trace)),
    )


def _requests(trace: Mapping[str, Any]) -> str:
    found = sorted(trace["requests"], key=lambda item: -int(item["count"]))
    shown = [f"{format_count(item['count'])} x {item['label']}" for item in found[:MOST_NAMED]]
    more = f", and {len(found) - MOST_NAMED} more labels" if len(found) > MOST_NAMED else ""
    return (", ".join(shown) or "none") + more


def _blind(trace: Mapping[str, Any]) -> str:
    unseen = _counted(trace["blind_spots"])
    lost = _counted(trace["counts"]["calls_not_representable"])
    parts = [unseen or "none seen", f"not replayable: {lost}" if lost else ""]
    return "; ".join(part for part in parts if part)


def _counted(named: Mapping[str, int]) -> str:
    ordered = sorted(named.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {format_count(count)}" for name, count in ordered)


def _ops(named: Mapping[str, int]) -> tuple[tuple[str, int, float], ...]:
    ordered = sorted(named.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMED]
    most = max((count for _, count in ordered), default=1)
    return tuple((name, count, count / most) for name, count in ordered)
