"""Locust's statistics of the engine's transactions, with rates over the time that was measured.

Locust divides by the time since its first user, and looks at the last ten seconds of the clock.
Targets of a run take turns, after warm-ups: a target's rate is over its own turns alone, as reports
have it. Locust asks its entries for their rates, and so the engine's have entries of their own.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from locust import stats

from replayer.measure.hlog import Segment, Span, covered_s
from replayer.run.ledger import RECENT_INTERVALS

__all__ = ["MeasuredTime", "RateEntry", "Total"]


@dataclass
class _RecentInterval:
    """What ended in one of the last intervals, by name."""

    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class MeasuredTime:
    """The measured time of one target, or of all together.

    Attributes:
        spans: Each of its segments, from its first interval to its last.
        recent: The last intervals of these.
    """

    spans: dict[Segment, Span] = field(default_factory=dict)
    recent: deque[_RecentInterval] = field(default_factory=lambda: deque(maxlen=RECENT_INTERVALS))

    def add(self, segments: set[Segment], span: Span) -> None:
        """Add an interval, in which some of its segments were measured."""
        for segment in segments:
            self.spans[segment] = span.joined(self.spans.get(segment, span))
        self.recent.append(_RecentInterval(span.end_s - span.start_s))

    def count(self, entry: stats.StatsEntry, name: str) -> None:
        """Count what ended in the interval that was added last."""
        self.recent[-1].counts[name] += entry.num_requests
        self.recent[-1].failures[name] += entry.num_failures

    @property
    def seconds(self) -> float:
        """How long it was measured."""
        return covered_s(self.spans.values())

    @property
    def recent_seconds(self) -> float:
        """How long the last intervals are together."""
        return sum(late.seconds for late in self.recent)


class RateEntry(stats.StatsEntry):
    """What Locust keeps of one name.

    Args:
        recorded: Whose it is.
        name: A transaction, or Locust's for the sum of all.
        method: Locust's kind of request.
        time: When it was measured.
    """

    def __init__(
        self, recorded: stats.RequestStats, name: str, method: str, time: MeasuredTime
    ) -> None:
        self._time = time
        super().__init__(recorded, name, method, recorded.use_response_times_cache)
        self._before_s = 0.0  # its first count may come late, but is of all the time

    def reset(self) -> None:
        """Begin anew, as Locust's page can be asked to in the middle of a run."""
        super().reset()  # type: ignore[no-untyped-call]
        self._before_s = self._time.seconds

    @property
    def total_rps(self) -> float:
        """How many ended a second of measured time."""
        return self._over_all(self.num_requests)

    @property
    def total_fail_per_sec(self) -> float:
        """How many of them failed."""
        return self._over_all(self.num_failures)

    @property
    def current_rps(self) -> float:
        """How many ended a second, in the last intervals that were measured."""
        ended = sum(late.counts[self.name] for late in self._time.recent)
        return _per(ended, self._time.recent_seconds)

    @property
    def current_fail_per_sec(self) -> float:
        """How many of them failed."""
        failed = sum(late.failures[self.name] for late in self._time.recent)
        return _per(failed, self._time.recent_seconds)

    def _over_all(self, count: int) -> float:
        return _per(count, self._time.seconds - self._before_s)


class Total(RateEntry):
    """All together: the engine's over measured time, and others as Locust has their rates."""

    @property
    def total_rps(self) -> float:
        """How many ended a second."""
        others = self._others()
        own = self.num_requests - sum(each.num_requests for each in others)
        return self._over_all(own) + sum(float(each.total_rps) for each in others)

    @property
    def total_fail_per_sec(self) -> float:
        """How many of them failed."""
        others = self._others()
        own = self.num_failures - sum(each.num_failures for each in others)
        return self._over_all(own) + sum(float(each.total_fail_per_sec) for each in others)

    @property
    def current_rps(self) -> float:
        """How many ended a second, of late."""
        return super().current_rps + sum(each.current_rps for each in self._others())

    @property
    def current_fail_per_sec(self) -> float:
        """How many of them failed."""
        others = self._others()
        return super().current_fail_per_sec + sum(
            float(each.current_fail_per_sec) for each in others
        )

    def _others(self) -> list[stats.StatsEntry]:
        """Return what Locust counts by itself, such as requests of HTTP."""
        return [each for each in self.stats.entries.values() if not isinstance(each, RateEntry)]


def _per(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0
