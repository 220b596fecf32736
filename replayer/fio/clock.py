"""When the jobs of one fio ran: told from how long each says it has been working.

fio says when nothing began or ended. A job's time reaches back from the moment of a document, or
from where a job began that waited for its end. Pure: documents in, seconds out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from replayer.fio.amounts import read_seconds
from replayer.fio.jobfile import Section, groups
from replayer.fio.snapshot import JobState

READ = "read"
AGREEING_S = 0.25  # chosen: a document comes a moment late, a process a second
_OFF = frozenset({None, "0", "none"})
_WRITE_ONLY = frozenset({"write", "randwrite", "trimwrite", "randtrimwrite"})


@dataclass(frozen=True)
class Stage:
    """A part of a job behind which, or before which, it does something else."""

    ops: frozenset[str]
    """What it does in it."""
    ran_ms: int
    """How long it has been doing so."""


def verifies_after(section: Section) -> bool:
    """Whether a job reads back what it wrote once all is written, and not in between."""
    return _reads_back(section) and section.value("verify_backlog") in _OFF


def _reads_back(section: Section) -> bool:
    """Whether all that a job reads is what it wrote: fio counts the time of that apart."""
    return section.pattern in _WRITE_ONLY and section.value("verify") not in _OFF


class Clock:
    """Places the jobs of one fio in time."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._ramps_s = {
            each.name: read_seconds(each.value("ramp_time") or "") or 0.0
            for each in sections
            if each.switched_on("ramp_time")
        }
        self._followers = dict(_followers(sections))
        self._in_turn = frozenset(each.name for each in sections if verifies_after(each))
        self._reading_back = frozenset(each.name for each in sections if _reads_back(each))
        self._begun: dict[str, float] = {}
        self._told: dict[str, list[float]] = {}
        self._started: dict[str, float] = {}

    def stages(self, job: JobState) -> list[Stage]:
        """Return what a job did one after the other, and for how long each."""
        others = frozenset(job.shares) - {READ}
        if job.name not in self._reading_back or READ not in job.shares:
            return [Stage(frozenset(job.shares), job.runtime_ms)]
        read = job.shares[READ]
        wrote_ms = max((job.shares[op].runtime_ms for op in others), default=0)
        # fio rounds to whole milliseconds: some pages are read back in none of them.
        read_ms = max(read.runtime_ms, 1 if read.times else 0)
        if job.name not in self._in_turn:
            return [Stage(frozenset(job.shares), wrote_ms + read.runtime_ms)]
        return [Stage(others, wrote_ms), Stage(frozenset({READ}), read_ms)]

    def started(self, jobs: Sequence[JobState], now_s: float) -> Mapping[str, float]:
        """Return when the measured time of each job began, of those of which it is known.

        Of a job with a ramp_time two documents in a row must agree: fio tells the mean of its
        processes, of which some may still have been in theirs.
        """
        # The last first: the end of a job is told by who waited for it.
        for job in reversed(jobs):
            start_s = self._place(job, now_s)
            if start_s is None or job.name in self._started:
                continue
            if job.name not in self._ramps_s:
                self._started[job.name] = start_s
            elif job.has_times:
                told = self._told.setdefault(job.name, [])
                told.append(start_s)
                if len(told) > 1 and abs(told[-1] - told[-2]) < AGREEING_S:
                    self._started[job.name] = told[-2]
        return self._started

    def ended(self, jobs: Sequence[JobState], now_s: float) -> Mapping[str, float]:
        """Return the same from fio's last document, behind which nothing will be known."""
        for job in reversed(jobs):
            start_s, ramp_s = self._place(job, now_s), self._ramps_s.get(job.name)
            if start_s is None or job.name in self._started:
                continue
            if ramp_s is None or job.has_times or self._ran_ms(job) > ramp_s * 1000:
                # The first that told of it was nearest to its begin.
                self._started[job.name] = self._told.get(job.name, [start_s])[0]
        return self._started

    def _place(self, job: JobState, now_s: float) -> float | None:
        """Return when what a job counts began, if all it did ended by now; None before that."""
        ran_ms = self._ran_ms(job)
        if not ran_ms and not any(share.count for share in job.shares.values()):
            return None
        awaited = (self._begun.get(name, now_s) for name in self._followers.get(job.name, ()))
        start_s = max(min(awaited, default=now_s) - ran_ms / 1000, 0.0)
        # fio begins to count anew where a ramp_time ends.
        ramp_s = self._ramps_s.get(job.name, 0.0) if job.has_times else 0.0
        self._begun.setdefault(job.name, start_s - ramp_s)
        return start_s

    def _ran_ms(self, job: JobState) -> int:
        return sum(stage.ran_ms for stage in self.stages(job))


def _followers(sections: Sequence[Section]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each job with those that fio begins only when it has ended."""
    begun: list[Section] = []
    for group in groups(sections):
        begun += group
        behind = [each.name for each in sections[len(begun) :]]
        for section in group:
            awaiting = (each.name for each in begun if each.value("wait_for") == section.name)
            yield section.name, (*behind, *awaiting)
