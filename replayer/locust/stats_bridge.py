"""Locust's statistics, filled in bulk from the engine's exact histograms.

Locust counts one event at a time; here whole intervals are merged, so that its CSV, HTML and JSON
hold every transaction. Its own listener is set aside for the engine's transactions alone: other
requests of a mixed locustfile are counted as ever.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from locust import User, stats
from locust.env import Environment

from replayer._native import Interval, Row, Transaction
from replayer.locust.failures import FailedTasks
from replayer.measure.clients import TaskFailure
from replayer.measure.hlog import Segment, Span, covered_s
from replayer.measure.units import NS_PER_S
from replayer.run.ledger import RECENT_INTERVALS, is_transaction


@dataclass
class _RecentInterval:
    """What ended in one of the last intervals, by name."""

    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class MeasuredTime:
    """The measured time of one target, or of all together."""

    spans: dict[Segment, Span] = field(default_factory=dict)
    """Each of its segments, from its first interval to its last."""
    recent: deque[_RecentInterval] = field(default_factory=lambda: deque(maxlen=RECENT_INTERVALS))
    """The last intervals of these."""

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
    """What Locust keeps of one name."""

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


METHOD = "FILE"
NS_PER_MS = 1e6

Handler = Callable[..., None]


class LocustStats:
    """The bridge into one environment's statistics."""

    def __init__(
        self, environment: Environment, begin_epoch_ns: int, targets: tuple[str, ...]
    ) -> None:
        self._environment = environment
        self._begin_epoch_ns = begin_epoch_ns
        """Wall-clock time that the engine's times count from."""
        self._targets = targets
        """Their names; a transaction is named ``target/transaction`` when there are several."""
        self._times = [MeasuredTime() for _ in targets]
        self._whole_time = MeasuredTime()
        self._latest: set[Segment] = set()
        self._upto_ns = 0
        self._failed_tasks = FailedTasks(environment)
        # As a listener of Locust's it would hear of every transaction of the engine, too.
        others = [self._failed_tasks.note_request]
        self._set_aside, self._own = _set_locust_aside(environment, others)

    def task_failures(self) -> tuple[TaskFailure, ...]:
        """Return what tasks of users raised until now, and which of their requests failed."""
        return self._failed_tasks.found()

    def release(self) -> None:
        """Let Locust count by itself again: another run brings a bridge of its own."""
        self._failed_tasks.unlisten()
        listened = self._environment.events.request
        listened.remove_listener(self._own)
        for handler in self._set_aside:
            listened.add_listener(handler)

    def name_of(self, target: int, transaction: str) -> str:
        """Return what Locust calls a transaction."""
        return f"{self._targets[target]}/{transaction}" if len(self._targets) > 1 else transaction

    def is_anyone_listening(self) -> bool:
        """Whether request events have listeners beside Locust's own."""
        return any(handler is not self._own for handler in _handlers(self._environment))

    def merge(self, interval: Interval) -> None:
        """Add what one interval measured."""
        span = Span(interval.start_ns / NS_PER_S, interval.end_ns / NS_PER_S)
        segments = {_segment(row) for row in interval.rows}
        if not segments and interval.start_ns == self._upto_ns:
            segments = self._latest  # nothing ended, and nothing began: the same turn goes on
        self._latest, self._upto_ns = segments, interval.end_ns
        self._measure({each for each in segments if each.phase == "measured"}, span)
        for row in interval.rows:
            if is_transaction(row):
                self._merge_transactions(row, interval)
            elif row.phase == "measured" and not row.expected and not _is_whole(row):
                self._merge_error(row, self._epoch_s(interval.end_ns))

    def fire(self, transaction: Transaction, user: object | None) -> None:
        """Tell the listeners of request events of one transaction."""
        failed = None if transaction.error is None else OSError(transaction.error)
        begun_ns = self._begin_epoch_ns + transaction.end_ns - transaction.latency_ns
        self._environment.events.request.fire(
            request_type=METHOD,
            name=self.name_of(transaction.target, transaction.name),
            response_time=transaction.latency_ns / NS_PER_MS,
            response_length=transaction.bytes,
            response=transaction,
            context=user.context() if isinstance(user, User) else {},
            exception=failed,
            start_time=begun_ns / NS_PER_S,
            url=None,
            user=user,
        )

    def _epoch_s(self, time_ns: int) -> float:
        return (self._begin_epoch_ns + time_ns) / NS_PER_S

    def _measure(self, segments: set[Segment], span: Span) -> None:
        """Count an interval as measured time of those whose segments it belongs to."""
        for target, time in enumerate(self._times):
            own = {segment for segment in segments if segment.target == target}
            if own:
                time.add(own, span)
        if segments:
            self._whole_time.add(segments, span)

    def _merge_transactions(self, row: Row, interval: Interval) -> None:
        name = self.name_of(row.target, row.transaction)
        ended = self._make_entry(row, interval)
        total = self._total()
        own_time = self._times[row.target]
        self._entry(name, own_time).extend(ended)
        own_time.count(ended, name)
        total.extend(ended)
        self._whole_time.count(ended, total.name)

    def _entry(self, name: str, time: MeasuredTime) -> stats.StatsEntry:
        """Return the entry of a name; Locust forgets all of them when its test begins."""
        recorded = self._environment.stats
        known = recorded.entries.get((name, METHOD))
        if known is None:
            known = recorded.entries[name, METHOD] = RateEntry(recorded, name, METHOD, time)
        return known

    def _total(self) -> stats.StatsEntry:
        """Return the entry of all together, with what other requests of a locustfile are in it."""
        recorded = self._environment.stats
        if not isinstance(recorded.total, RateEntry):
            others = recorded.total
            recorded.total = Total(recorded, others.name, others.method, self._whole_time)
            recorded.total.extend(others)
        return recorded.total

    def _make_entry(self, row: Row, interval: Interval) -> stats.StatsEntry:
        """Return what one interval has of one transaction, as Locust keeps it."""
        histogram = row.histogram
        recorded = self._environment.stats
        entry = stats.StatsEntry(recorded, self.name_of(row.target, row.transaction), METHOD)
        entry.start_time = self._epoch_s(interval.start_ns)
        entry.last_request_timestamp = self._epoch_s(interval.end_ns)
        second = int(entry.last_request_timestamp)
        entry.num_requests = histogram.count
        entry.num_reqs_per_sec[second] = histogram.count
        entry.total_content_length = row.bytes
        if not row.expected:  # times are of those that succeeded, as in reports
            entry.num_failures = entry.num_none_requests = histogram.count
            entry.num_fail_per_sec[second] = histogram.count
            return entry
        # Locust annotates milliseconds as int, and logs floats as well.
        total_ms = histogram.mean * histogram.count / NS_PER_MS
        entry.total_response_time = total_ms  # type: ignore[assignment]
        entry.min_response_time = histogram.min / NS_PER_MS  # type: ignore[assignment]
        entry.max_response_time = histogram.max / NS_PER_MS  # type: ignore[assignment]
        for value_ns, count in histogram.buckets():
            entry.response_times[stats.bucket_response_time(value_ns / NS_PER_MS)] += count
        return entry

    def _merge_error(self, row: Row, end_s: float) -> None:
        errors = self._environment.stats.errors
        name = self.name_of(row.target, row.transaction)
        text = f"{row.op}: {row.outcome}"
        key = stats.StatsError.create_key(METHOD, name, text)
        error = errors.setdefault(key, stats.StatsError(METHOD, name, text))
        error.occurrences += row.histogram.count
        error.first_seen = error.first_seen or end_s
        error.last_seen = end_s


def _segment(row: Row) -> Segment:
    return Segment(row.target, row.round, row.phase)


def _is_whole(row: Row) -> bool:
    op: str = row.op
    return op.startswith("transaction")


def _set_locust_aside(
    environment: Environment, others: Sequence[Handler]
) -> tuple[list[Handler], Handler]:
    """Replace the runner's own listeners by one that leaves the engine's transactions out."""
    own = [each for each in _handlers(environment) if each.__module__ == "locust.runners"]

    def count_others(**event: Any) -> None:  # noqa: ANN401 - a request event holds anything
        if not isinstance(event.get("response"), Transaction):
            for handler in (*own, *others):
                handler(**event)

    for handler in own:
        environment.events.request.remove_listener(handler)
    environment.events.request.add_listener(count_others)
    return own, count_others


def _handlers(environment: Environment) -> list[Handler]:
    found: list[Handler] = environment.events.request._handlers  # noqa: SLF001 - no public view
    return found
