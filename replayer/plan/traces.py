"""The traces of a plan: rows of the document, the steps that replay them, and their names.

Pure: everything is in the facts and counts that are handed in.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from replayer.plan.census import BLOCK_BYTES
from replayer.trace.facts import TraceFacts
from replayer.trace.reading import TraceStatistics

ReplayPace = Literal["asap", "closed", "timed"]

AS_RECORDED = 100  # per cent
_OUTSIDE = re.compile(r"[^a-z0-9]+")


class Traces:
    """The traces of a plan, each there once: ``rows`` of plan format 1, and their facts."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.rows: list[dict[str, str]] = []
        self.facts: list[TraceFacts] = []
        self._taken = set(taken)

    def add(self, facts: TraceFacts) -> int:
        """Return the index of a trace, adding it if it is new."""
        for index, known in enumerate(self.facts):
            if known.folder == facts.folder:
                return index
        name = _unlike(self._taken, plain_name(facts.folder.resolve().name, "trace"))
        self._taken.add(name)
        self.facts.append(facts)
        self.rows.append({"name": name, "directory": name, "sha256": facts.sha256})
        return len(self.rows) - 1


@dataclass(frozen=True)
class TraceSummary:
    """A trace that transactions replay, as people see it."""

    name: str
    directory: str
    events: int
    threads: int
    span_ns: int
    requests: Mapping[str, int]
    files: int
    """Of the tree before, counted once."""
    directories: int
    size_bytes: int
    paths: Mapping[str, int]
    """How many are shared by all users, how many are each user's own."""
    blind_spots: Mapping[str, int]
    space_bytes: int
    """What the tree takes in blocks, with every user's own files."""
    inodes: int


def describe_trace(
    facts: TraceFacts, directory: str, others: int, census: TraceStatistics | None
) -> TraceSummary:
    """Return what a trace is, and what laying out its tree takes.

    Each user beyond the first has files of its own of the same sizes; where requests are replayed,
    that is the most that it can have of the tree at a time. Others need a ``census``.
    """
    entries = facts.files + facts.directories + 1
    copies = others * census.own_entries if census else 0
    own_bytes = others * census.own_bytes if census else 0
    blocks = facts.size_bytes + entries * BLOCK_BYTES
    return TraceSummary(
        name=facts.name,
        directory=directory,
        events=facts.events,
        threads=facts.threads,
        span_ns=facts.span_ns,
        requests=dict(facts.requests),
        files=facts.files,
        directories=facts.directories,
        size_bytes=facts.size_bytes,
        paths=dict(facts.paths),
        blind_spots=dict(facts.blind_spots),
        space_bytes=blocks + own_bytes + copies * BLOCK_BYTES,
        inodes=entries + copies,
    )


def replay_step(trace: int, request: str | None, pace: ReplayPace, speed: float) -> dict[str, Any]:
    """Return the step of plan format 1 that replays a trace or one of its requests (None: all)."""
    return {
        "do": "replay",
        "trace": trace,
        "request": request,
        "pace": pace,
        "speed_percent": round(speed * AS_RECORDED),
    }


def plain_name(text: str, otherwise: str) -> str:
    """Return a name of a-z, 0-9 and - that resembles a text."""
    return _OUTSIDE.sub("-", text.lower()).strip("-") or otherwise


def plain_names(texts: Iterable[str], otherwise: str) -> dict[str, str]:
    """Return a plain name for each text, no two alike."""
    found: dict[str, str] = {}
    for text in texts:
        found[text] = _unlike(set(found.values()), plain_name(text, otherwise))
    return found


def _unlike(taken: set[str], name: str) -> str:
    number, unlike = 2, name
    while unlike in taken:
        unlike = f"{name}-{number}"
        number += 1
    return unlike
