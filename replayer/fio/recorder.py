"""Writing what fio measures into a run folder, in the forms in which the engine writes its own.

fio prints sums; the difference of two is an interval, a line of histograms.hlog and a row of
timeline.csv per op. Time is that of fio: a job's intervals cover the run time that fio states, so
that rates are fio's. Jobs are transactions, their reads, writes, trims and fsyncs are ops.
"""

import errno
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from replayer._native import Histogram, Interval, Recording
from replayer.fio.clock import Clock
from replayer.fio.jobfile import Section
from replayer.fio.options import FILE_CALLS
from replayer.fio.snapshot import JobState, Share, Snapshot
from replayer.measure.hlog import Key, Segment, Span, row_of
from replayer.measure.runfolder import writing_to

LONGEST_NS = 24 * 3600 * 10**9  # what the histograms hold
SYNC = "fsync"


@dataclass(frozen=True)
class Gain:
    """What one op of one job did in one interval."""

    key: Key
    span: Span
    bytes: int
    histogram: Histogram


@dataclass
class _Job:
    """What was recorded of a job of the fio that runs now."""

    end_s: float
    ran_ms: list[int]
    """How long each of its stages had lasted by then."""
    shares: Mapping[str, Share] = field(default_factory=dict)


class FioRecorder:
    """Writes histograms.hlog and timeline.csv.

    Raises:
        ReplayerError: The folder takes no more.
    """

    def __init__(self, folder: Path) -> None:
        self.begin = time.monotonic()
        """CLOCK_MONOTONIC in seconds: the zero of all times in the folder."""
        self._folder = folder
        self._segment = Segment(0, 0, "measured")
        self._users = 0
        self._clock = Clock(())
        self._limited: frozenset[str] = frozenset()
        self._calls: Mapping[str, str] = {}
        self._jobs: dict[str, _Job] = {}
        with writing_to(folder):
            self._recording = Recording(folder, time.time_ns())
            self._look()

    @property
    def now_s(self) -> float:
        """Seconds since the begin."""
        return time.monotonic() - self.begin

    def begin_segment(self, segment: Segment, users: int, sections: Sequence[Section]) -> None:
        """Begin with a new fio, whose jobs have so many processes at once."""
        self._segment, self._users = segment, users
        self._clock = Clock(sections)
        self._limited = frozenset(s.name for s in sections if s.switched_on("max_latency"))
        self._calls = {
            each.name: FILE_CALLS[each.engine] for each in sections if each.engine in FILE_CALLS
        }
        self._jobs.clear()

    def take(self, snapshot: Snapshot) -> list[Gain]:
        """Record what has happened since the last snapshot."""
        jobs = self._told(snapshot.jobs)
        self._begin(self._clock.started(jobs, self.now_s))
        return self._record(jobs)

    def finish(self, snapshot: Snapshot) -> list[Gain]:
        """Record the rest, from the last thing that fio printed, with the errors."""
        jobs = self._told(snapshot.jobs)
        self._begin(self._clock.ended(jobs, self.now_s))
        failures = (gain for job in jobs for gain in self._failures(job))
        return [*self._record(jobs), *self._written(failures)]

    def _told(self, jobs: Iterable[JobState]) -> list[JobState]:
        """Return jobs by what they do: those of one call a file do neither read nor write."""
        return [
            _renamed(job, self._calls[job.name]) if job.name in self._calls else job for job in jobs
        ]

    def _record(self, jobs: Iterable[JobState]) -> list[Gain]:
        return self._written(gain for job in jobs for gain in self._gains(job))

    def _written(self, gains: Iterable[Gain]) -> list[Gain]:
        found = list(gains)
        with writing_to(self._folder):
            for span, together in groupby(found, lambda gain: gain.span):
                start_ns, end_ns = _since_begin_ns(span.start_s), _since_begin_ns(span.end_s)
                rows = [row_of(gain.key, gain.bytes, gain.histogram) for gain in together]
                self._recording.append(Interval(start_ns, end_ns, self._users, rows))
            self._look()
        return found

    def _look(self) -> None:
        """Raise what the files did not take, as the run ends with it."""
        if self._recording.error is not None:
            _, number = self._recording.error
            raise OSError(number, os.strerror(number))

    def _begin(self, started: Mapping[str, float]) -> None:
        for name, start_s in started.items():
            if name not in self._jobs:
                self._jobs[name] = _Job(start_s, [])

    def _gains(self, job: JobState) -> Iterator[Gain]:
        """Yield an interval of each stage of a job; those before its measured time are not kept."""
        known = self._jobs.get(job.name)
        if known is None:
            return
        new = {op: _since(share, known.shares.get(op, Share())) for op, share in job.shares.items()}
        # fio counts the bytes of an I/O before its time: those come with it, in a later interval.
        known.shares = {
            op: share if new[op].times else known.shares.get(op, Share())
            for op, share in job.shares.items()
        }
        stages = self._clock.stages(job)
        before = known.ran_ms or [0] * len(stages)
        known.ran_ms = [max(stage.ran_ms, ran) for stage, ran in zip(stages, before, strict=True)]
        for stage, ran, was in zip(stages, known.ran_ms, before, strict=True):
            span = Span(known.end_s, known.end_s + (ran - was) / 1000)
            known.end_s = span.end_s
            own = {op: share for op, share in new.items() if op in stage.ops}
            # Of a stage of several it is told when it was, though nothing of it has ended.
            seen = (op for op, share in known.shares.items() if share.total)
            told = frozenset(seen if len(stages) > 1 else ())
            yield from self._stage(job.name, span, own, told)

    def _stage(
        self, name: str, span: Span, new: Mapping[str, Share], told: frozenset[str]
    ) -> Iterator[Gain]:
        """Yield an interval; one in which nothing ended is kept, as time has passed."""
        if span.end_s <= span.start_s and not any(share.times for share in new.values()):
            return
        whole = Histogram()
        for op, share in new.items():
            if share.times or op in told:
                histogram = _histogram(share.times)
                yield Gain(self._key(name, op), span, share.bytes, histogram)
                if op != SYNC:
                    whole.add(histogram)
        # Each I/O is what a user of the job waits for; it starts when fio issues it.
        yield Gain(self._key(name, "transaction"), span, 0, whole)
        yield Gain(self._key(name, "transaction.service"), span, 0, whole)

    def _failures(self, job: JobState) -> Iterator[Gain]:
        """Yield what failed; fio does not say how long that took."""
        count = max(job.errors, 1 if job.error else 0)
        if not count:
            return
        known = self._jobs.get(job.name)
        at = self.now_s if known is None else known.end_s
        histogram = Histogram()
        histogram.record(0, count)
        # fio says ETIMEDOUT of its own limit, too: the file system has answered then.
        limited = job.error == errno.ETIMEDOUT and job.name in self._limited
        outcome = "LATE" if limited else errno.errorcode.get(job.error, "EIO")
        busiest = max(job.shares, key=lambda op: job.shares[op].total)
        for op, how in ((busiest, outcome), ("transaction", "failed")):
            key = Key(self._segment, job.name, op, how, expected=False)
            yield Gain(key, Span(at, at), 0, histogram)

    def _key(self, name: str, op: str) -> Key:
        return Key(self._segment, name, op, "ok", expected=True)


def _since_begin_ns(moment_s: float) -> int:
    """Return a time in the microseconds that the files have."""
    return round(moment_s * 1e6) * 1000


def _renamed(job: JobState, call: str) -> JobState:
    busiest = max(job.shares.values(), key=lambda share: share.total)
    share = replace(busiest, bytes=0, runtime_ms=job.runtime_ms)
    return replace(job, shares={call: share})


def _since(now: Share, before: Share) -> Share:
    """Return what was added; fio reads its sums while jobs add to them, so never below nothing."""
    times = {
        value: count - before.times.get(value, 0)
        for value, count in now.times.items()
        if count > before.times.get(value, 0)
    }
    return Share(now.total - before.total, max(now.bytes - before.bytes, 0), times)


def _histogram(times: Mapping[int, int]) -> Histogram:
    found = Histogram()
    for value, count in times.items():
        found.record(min(max(value, 1), LONGEST_NS), count)
    return found
