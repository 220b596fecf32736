"""Writes the results of all workers into the master's run folder, second by second.

Times are shifted to the master's clock. Histograms are added bucket by bucket. A second is written
when the results of every living worker reach beyond it; later ones make an interval of their own.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from replayer._native import Histogram, Interval, Recording, Row
from replayer.cluster.wire import News
from replayer.cluster.worker import Worker
from replayer.cluster.worker_pool import WorkerPool
from replayer.errors import ReplayerError
from replayer.measure.hlog import Phase
from replayer.measure.runfolder import event_line
from replayer.measure.units import NS_PER_S
from replayer.run.ledger import is_transaction
from replayer.run.progress import ProgressDisplay
from replayer.run.targets import explain_record
from replayer.run.writer import RunWriter

SLACK_NS = 100_000_000
"""Chosen: workers begin a segment within milliseconds, and cut seconds from then on."""

NOBODY: Mapping[int, int] = {}

PhaseKey = tuple[int, int, Phase]
"""Target, round and phase."""
RowKey = tuple[PhaseKey, str, str, str, bool]


@dataclass
class _Second:
    """One second of one phase."""

    start_ns: int
    end_ns: int
    users: dict[int, int] = field(default_factory=dict)
    rows: dict[RowKey, list[Row]] = field(default_factory=dict)

    def take(self, worker: int, interval: Interval) -> None:
        self.start_ns = min(self.start_ns, interval.start_ns)
        self.end_ns = max(self.end_ns, interval.end_ns)
        self.users[worker] = interval.users
        for row in interval.rows:
            key = (phase_of(row), row.transaction, row.op, row.outcome, row.expected)
            self.rows.setdefault(key, []).append(row)

    def whole(self, resting: Mapping[int, int]) -> Interval:
        users = sum({**resting, **self.users}.values())
        rows = [_sum(key, parts) for key, parts in self.rows.items()]
        return Interval(self.start_ns, self.end_ns, users, rows)


@dataclass
class Merger:
    """The seconds that are not complete yet."""

    takers: list[Callable[[Interval], None]] = field(default_factory=list)
    _anchors: dict[PhaseKey, int] = field(default_factory=dict)
    _open: dict[tuple[PhaseKey, int], _Second] = field(default_factory=dict)
    _latest: PhaseKey | None = None
    _reached: dict[PhaseKey, int] = field(default_factory=dict)

    def add(self, worker: int, interval: Interval) -> None:
        """Add what a worker measured; times are the master's already."""
        phase = phase_of(interval.rows[0]) if interval.rows else self._latest
        if phase is None:
            return  # nothing has run yet, and nothing did in this interval
        self._latest = phase
        anchor_ns = self._anchors.setdefault(phase, interval.start_ns)
        middle_ns = (interval.start_ns + interval.end_ns) // 2
        place = (phase, (middle_ns - anchor_ns) // NS_PER_S)
        second = self._open.get(place)
        if second is None:
            second = self._open[place] = _Second(interval.start_ns, interval.end_ns)
        second.take(worker, interval)

    def hand_on(self, upto_ns: int, resting: Mapping[int, int] = NOBODY) -> None:
        """Hand on the seconds that end by then; ``resting`` are the users at rest, by worker."""
        for place in self._done(upto_ns + SLACK_NS):
            self._hand(place, resting)

    def hand_on_all(self) -> None:
        """Hand on what is left."""
        for place in sorted(self._open, key=lambda place: self._open[place].start_ns):
            self._hand(place, NOBODY)

    def _done(self, upto_ns: int) -> Iterator[tuple[PhaseKey, int]]:
        found = [
            (second.start_ns, place)
            for place, second in self._open.items()
            if max(second.end_ns, self._anchors[place[0]] + (place[1] + 1) * NS_PER_S) <= upto_ns
        ]
        yield from (place for _, place in sorted(found))

    def _hand(self, place: tuple[PhaseKey, int], resting: Mapping[int, int]) -> None:
        """Hand a second on, cut so that it follows the one before: reports cut time at its ends."""
        whole = self._open.pop(place).whole(resting)
        reached_ns = self._reached.get(place[0], whole.start_ns)
        if whole.start_ns < reached_ns < whole.end_ns:
            whole = Interval(reached_ns, whole.end_ns, whole.users, whole.rows)
        self._reached[place[0]] = max(reached_ns, whole.end_ns)
        for taker in self.takers:
            taker(whole)


def phase_of(row: Row) -> PhaseKey:
    """Return the phase that a row belongs to."""
    return row.target, row.round, row.phase


def _sum(key: RowKey, parts: Sequence[Row]) -> Row:
    phase, transaction, op, outcome, expected = key
    moved = sum(part.bytes for part in parts)
    times = Histogram.merged(part.histogram for part in parts)
    return Row(*phase, transaction, op, outcome, expected, moved, times)


LATEST_NS = 2 * NS_PER_S
"""Chosen: results of a second are here so long after it began, for a worker tells them at its end,
four times a second."""


class MergedRecorder:
    """Writes what workers tell."""

    def __init__(self, writer: RunWriter, pool: WorkerPool, progress: ProgressDisplay) -> None:
        self.writer = writer
        self.begin_ns = time.monotonic_ns()
        """The run's begin on this machine's monotonic clock."""
        self.begin_epoch_ns = time.time_ns()
        """The same as wall-clock time."""
        self.measured_until_s = 0.0
        """Until when something was measured, in seconds since the run's begin."""
        self.pool = pool
        self._progress = progress
        self._merger = Merger()
        self._recording: Recording | None = None
        self._phases: set[str] = set()
        self._has_failed = False
        pool.on_news = self._take
        pool.on_loss = self._lose
        pool.on_return = self._welcome

    def begin(self) -> None:
        """The engines are made now."""
        self.begin_ns, self.begin_epoch_ns = time.monotonic_ns(), time.time_ns()
        self._recording = Recording(self.writer.folder.path, self.begin_epoch_ns)
        self._merger.takers.append(self._record)

    def hand_to(self, taker: Callable[[Interval], None]) -> None:
        """Hand every second to one more."""
        self._merger.takers.append(taker)

    def finish(self) -> None:
        """Hand on what is left, and write what could not be written before."""
        self._merger.hand_on_all()
        if self._recording is not None:
            self._recording.finish()

    def record_failure(self) -> ReplayerError | None:
        """Return why the record is not whole, or was not at some time; None when it always was."""
        return explain_record(self.writer.folder.path, self._error())

    def _error(self) -> tuple[str, int] | None:
        return None if self._recording is None else self._recording.error

    def say(self, text: str) -> None:
        """Tell the user something."""
        self._progress.say(text)

    def now_s(self) -> float:
        """Return the seconds since the run's begin."""
        return self.since_s(time.monotonic())

    def since_s(self, moment_s: float) -> float:
        """Return when in the run a moment of the monotonic clock was."""
        return max(moment_s - self.begin_ns / NS_PER_S, 0.0)

    def _take(self, worker: Worker, news: News) -> None:
        for interval in news.intervals:
            shifted = _shifted(interval, worker.offset_ns)
            worker.upto_ns = max(worker.upto_ns, shifted.end_ns)
            _count(worker, shifted)
            if any(row.phase == "measured" for row in shifted.rows):
                self.measured_until_s = max(self.measured_until_s, shifted.end_ns / NS_PER_S)
            self._merger.add(worker.number, shifted)
        for event in news.events:
            self._note(worker, dict(event))
        living = self.pool.living
        if living:
            now_ns = int(self.now_s() * NS_PER_S)
            self._merger.hand_on(
                min(_reached_ns(each, now_ns) for each in living),
                {each.number: each.state.running for each in living if not each.state.busy},
            )

    def _record(self, interval: Interval) -> None:
        if self._recording is not None:
            self._recording.append(interval)
            self._tell_of_failure()

    def _tell_of_failure(self) -> None:
        """Have events.jsonl say once, as the engine does, that a file could not be written."""
        error = self._error()
        if error is None or self._has_failed:
            return
        self._has_failed = True
        name, number = error
        message = f"the record is incomplete: {name}: {os.strerror(number)}"
        fields: dict[str, Any] = {"message": message, "errno": number}
        self._write_event("warning", self.now_s(), fields)

    def _write_event(self, kind: str, t_s: float, fields: dict[str, Any]) -> None:
        if self._recording is not None:
            self._recording.append_events(event_line(kind, round(t_s, 6), fields))
        else:  # no engine is made yet
            with suppress(ReplayerError):
                self.writer.folder.append_event(kind, round(t_s, 6), fields)

    def _note(self, worker: Worker, event: dict[str, Any]) -> None:
        """Keep a worker's event; that a phase began or ended is told once, by whoever is first."""
        kind, t_s = str(event.pop("kind", "?")), event.pop("t_s", None)
        shifted_s = self.now_s() if t_s is None else t_s + worker.offset_ns / NS_PER_S
        if kind == "phase":
            said = json.dumps(event, sort_keys=True)
            if said in self._phases:
                return
            self._phases.add(said)
        else:
            event["client"] = worker.number
        self._write_event(kind, max(shifted_s, 0.0), event)

    def _lose(self, worker: Worker) -> None:
        since_s = self.since_s(worker.was_lost[-1][0])
        text = f"{worker} was lost at {since_s:.1f} s: it {worker.lost}"
        self._tell(worker, "lost", text, since_s)

    def _welcome(self, worker: Worker) -> None:
        back_s = self.now_s()
        worker.back_s.append(back_s)
        text = f"{worker} is back: its results count and include the gap"
        self._tell(worker, "back", text, back_s)

    def _tell(self, worker: Worker, what: str, text: str, at_s: float) -> None:
        event: dict[str, Any] = {"client": worker.number, "what": what, "message": text, "hint": ""}
        self._write_event("warning", at_s, event)
        self._progress.say(f"replayer: {text}")


def _reached_ns(worker: Worker, now_ns: int) -> int:
    """Return until when results are known: a worker whose users rest tells no more seconds."""
    return worker.upto_ns if worker.state.busy else max(worker.upto_ns, now_ns - LATEST_NS)


def _shifted(interval: Interval, offset_ns: int) -> Interval:
    return Interval(
        max(interval.start_ns + offset_ns, 0),
        max(interval.end_ns + offset_ns, 0),
        interval.users,
        interval.rows,
    )


def _count(worker: Worker, interval: Interval) -> None:
    for row in interval.rows:
        if is_transaction(row):
            key = (row.target, row.transaction)
            worker.shares[key] = worker.shares.get(key, 0) + row.histogram.count
