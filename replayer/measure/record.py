"""Reading a run folder, whatever became of the run: finished, interrupted or killed.

Reads and adds up; judges and prints nothing. What could not be read is counted and handed on. The
files of a folder are compared with each other to find what is missing: the engine writes every
interval into the histograms and the timeline, and ``run.json`` has the summary of a judged run.
"""

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import ValidationError

from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen
from replayer.measure.hlog import PHASES, Key, Log, Segment, Span, read_log
from replayer.measure.run import FORMAT, Process, Run, is_alive, is_elsewhere
from replayer.measure.timeline import Columns, Seconds, read_timeline
from replayer.paths import UnaskablePathError, is_folder

_Counts = Mapping[Key, int]


def find_damage(
    folder: Path,
    run: Run,
    log: Log,
    seconds: Mapping[Key, Seconds],
    endings: Container[Segment],
) -> Iterator[str]:
    """Yield a sentence for each file that is missing, empty or not whole.

    A run that has written no end may have been in the middle of an interval: of that one only files
    without a byte are told.
    """
    logged = {key: histogram.count for key, histogram in log.histograms.items()}
    timed = {key: int(own.count.sum()) for key, own in seconds.items()}
    told = _transactions_told(run)
    for name, own, other, what in (
        ("histograms.hlog", logged, timed, "times and counts"),
        ("timeline.csv", timed, logged, "bytes, and what changed with time,"),
    ):
        lacking = max(sum(other.values()) - sum(own.values()), told - _transactions(own))
        state = _state(folder / name, f"has at least {lacking:,} results too few")
        if lacking > 0 and (run.ended is not None or state in _WITHOUT):
            yield f"{name} {state}: {what} are missing or too low"
    if not all(segment in endings for segment in _ended(run)):
        state = _state(folder / "events.jsonl", "does not say how each round ended")
        yield f"events.jsonl {state}: calls that never began, hung or were slow may be missing"


_WITHOUT = ("is missing", "is empty")


def _state(file: Path, otherwise: str) -> str:
    missing, empty = _WITHOUT
    if not file.exists():
        return missing
    return otherwise if file.stat().st_size else empty


def _transactions(counts: _Counts) -> int:
    return sum(
        count
        for key, count in counts.items()
        if key.segment.phase == "measured" and key.op == "transaction"
    )


def _ended(run: Run) -> Iterator[Segment]:
    """Yield the rounds of which it was known how they ended when the run was judged."""
    for target in () if run.summary is None else run.summary.targets:
        for part in target.rounds:
            if part.number is not None and part.drain_s is not None:
                yield Segment(target.index, part.number, "measured")


def _transactions_told(run: Run) -> int:
    """Return how many transactions run.json tells of; 0 where it has no summary."""
    targets = () if run.summary is None else run.summary.targets
    return sum(
        found.count + found.cancelled for target in targets for found in target.overall.transactions
    )


Event = Mapping[str, Any]

RUN_JSON = "run.json"


class LostLines(Frozen):
    """Lines that were cut short or damaged, by file."""

    histograms: int
    timeline: int
    events: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.histograms + self.timeline + self.events


@dataclass(frozen=True)
class Ending:
    """How a segment came to its end."""

    end_s: float
    """From when on no transaction began."""
    unbegun: int
    """Transactions that were due before and never began."""


@dataclass(frozen=True)
class RunRecord:
    """All that a run left behind."""

    folder: Path
    run: Run
    status: Literal["running", "finished", "interrupted", "failed", "killed"]
    """As in run.json; ``killed`` when it says running and the process is gone (of one in another
    PID namespace that is not known)."""
    log: Log
    """The histograms, added up per key."""
    bytes: Mapping[Key, int]
    seconds: Mapping[Key, Seconds]
    spans: Mapping[Segment, Span]
    endings: Mapping[Segment, Ending]
    """How each came to its end, where that is known."""
    events: tuple[Event, ...]
    """events.jsonl, oldest first."""
    losses: LostLines
    """What could not be read."""
    damage: tuple[str, ...]
    """Which files are missing, empty or not whole, in sentences."""

    @cached_property
    def plan(self) -> Mapping[str, Any] | None:
        """plan.json, read when it is first asked for; None: missing, damaged or no mapping."""
        try:
            found = json.loads((self.folder / "plan.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def load_run(path: Path, told: Run | None = None) -> RunRecord:
    """Read a run folder; ``told`` is what run.json should say, where it may not have been written.

    Raises:
        ReplayerError: There is none, it is of another format, run.json is damaged, or another file
            of it cannot be read at all.
    """
    run = told if told is not None and path.is_dir() else _load_run_json(path)
    try:
        return _load(path, run)
    except OSError as error:
        message = f"{error.filename or path}: cannot be read: {error.strerror or error}"
        raise ReplayerError(message, hint="a report needs to read all files of the run") from error


def _load(path: Path, run: Run) -> RunRecord:
    log = read_log(path / "histograms.hlog")
    moved, seconds, lost_rows = _timeline(path / "timeline.csv")
    events, lost_events = read_events(path / "events.jsonl")
    spans, endings = _stretched({**_timed(seconds), **log.spans}, events), _endings(events)
    for guest, host in _guests(spans, events):
        spans[guest] = spans[guest].joined(spans[host])
        if host in endings and guest not in endings:
            endings[guest] = Ending(endings[host].end_s, 0)
    return RunRecord(
        folder=path,
        run=run,
        status="killed" if run.status == "running" and _is_gone(run.process) else run.status,
        log=log,
        bytes=MappingProxyType(moved),
        seconds=seconds,
        spans=MappingProxyType(spans),
        endings=MappingProxyType(endings),
        events=events,
        losses=LostLines(histograms=log.damaged, timeline=lost_rows, events=lost_events),
        damage=tuple(find_damage(path, run, log, seconds, endings)),
    )


def _is_gone(process: Process) -> bool:
    return not is_alive(process) and not is_elsewhere(process)


def read_events(path: Path) -> tuple[tuple[Event, ...], int]:
    """Return the events that are whole, and how many are not."""
    if not path.exists():
        return (), 0
    found = [_event(line) for line in path.read_bytes().splitlines(keepends=True)]
    whole = tuple(event for event in found if event is not None)
    return whole, len(found) - len(whole)


def _load_run_json(path: Path) -> Run:
    file = path / RUN_JSON
    try:
        text = file.read_bytes()
    except OSError as error:
        message = f"{path}: not a run folder: {RUN_JSON}: {error.strerror or error}"
        raise ReplayerError(message, hint=_nearby(path)) from error
    try:
        document = json.loads(text)
        written = document["format"]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{file}: is not the run.json of a replayer run"
        raise ReplayerError(message, hint=_nearby(path)) from error
    if written != FORMAT:
        message = f"{file}: run format {written}, this version reads format {FORMAT}"
        raise ReplayerError(message, hint="use the version of replayer that wrote it")
    return _validated(file, text)


def _validated(file: Path, text: bytes) -> Run:
    try:
        return Run.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ReplayerError(
            f"{file}: {place}: {first['msg']}", hint="the file was changed or damaged after the run"
        ) from error


def _nearby(path: Path) -> str:
    """Name the run folders inside a folder that is none itself, newest first."""
    try:
        is_there = is_folder(path)
    except UnaskablePathError as error:
        return error.hint
    if not is_there:
        return "'replayer run' creates run folders, in ./replayer-runs unless -o is given"
    inside = sorted((found.parent.name for found in path.glob(f"*/{RUN_JSON}")), reverse=True)
    if not inside:
        return "a run folder holds run.json, histograms.hlog and timeline.csv"
    return f"it contains run folders; the newest is {path / inside[0]}"


def _timeline(path: Path) -> tuple[dict[Key, int], Mapping[Key, Seconds], int]:
    moved: dict[Key, int] = {}
    columns = Columns()
    lost = 0
    for row in read_timeline(path):
        if row is None:
            lost += 1
        else:
            moved[row.key] = moved.get(row.key, 0) + row.bytes
            columns.take(row)
    return moved, columns.finished(), lost


def _event(line: bytes) -> Event | None:
    if not line.endswith(b"\n"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _timed(seconds: Mapping[Key, Seconds]) -> dict[Segment, Span]:
    """Return when each segment was recorded as the timeline has it, for where the log lacks it."""
    found: dict[Segment, Span] = {}
    for key, own in seconds.items():
        span = Span(float(own.start_s.min()), float(own.end_s.max()))
        found[key.segment] = span.joined(found.get(key.segment, span))
    return found


def _stretched(spans: Mapping[Segment, Span], events: tuple[Event, ...]) -> dict[Segment, Span]:
    """Return when each segment was measured; time in which nothing ended left no line, but passed.

    A segment begins with its own phase event and lasts until one that ends it, if there are any.
    """
    found = dict(spans)
    ends = [*_phases(events), None][1:]
    for (begin, segment), following in zip(_phases(events), ends, strict=True):
        if segment is None:
            continue
        known = found.get(segment, Span(begin, begin))
        # Between the end of one segment and the begin of the next lies work that is not measured.
        ended = following is not None and following[1] is None
        end = following[0] if following is not None and ended else known.end_s
        found[segment] = known.joined(Span(begin, max(begin, end)))
    return found


def _guests(
    spans: Mapping[Segment, Span], events: tuple[Event, ...]
) -> list[tuple[Segment, Segment]]:
    """Return the segments without a phase of their own, and in whose they were measured.

    Users in Python stay on the target they were dealt: all targets are measured in one segment,
    which bears the name of the first. On several clients, one of its users may begin before that is
    told to have begun, which is by the client that was told first.
    """
    hosts = {segment for _, segment in _phases(events) if segment is not None}
    return [
        (guest, host)
        for guest, span in spans.items()
        for host in hosts
        if guest not in hosts
        and (guest.round, guest.phase) == (host.round, host.phase)
        and spans[host].start_s <= span.end_s
        and span.start_s < spans[host].end_s
    ]


def _endings(events: tuple[Event, ...]) -> dict[Segment, Ending]:
    """Return how each segment ended; several clients end one each in its own time."""
    found: dict[Segment, Ending] = {}
    for event in events:
        target, number, unbegun = (event.get(name) for name in ("target", "round", "unbegun"))
        at_s = event.get("t_s")
        if event.get("kind") != "ending" or not isinstance(at_s, int | float):
            continue
        if isinstance(target, int) and isinstance(number, int) and isinstance(unbegun, int):
            segment = Segment(target, number, "measured")
            known = found.get(segment, Ending(at_s, 0))
            found[segment] = Ending(max(known.end_s, at_s), known.unbegun + unbegun)
    return found


def _phases(events: tuple[Event, ...]) -> Iterator[tuple[float, Segment | None]]:
    for event in events:
        if event.get("kind") != "phase" or not isinstance(event.get("t_s"), int | float):
            continue
        phase, target, number = event.get("phase"), event.get("target"), event.get("round")
        if phase in PHASES and isinstance(target, int) and isinstance(number, int):
            yield event["t_s"], Segment(target, number, phase)
        else:
            yield event["t_s"], None  # an end: it closes what was open
