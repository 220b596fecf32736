"""Locust's statistics, filled in bulk from the engine's exact histograms.

Locust counts one event at a time and rounds to milliseconds; here whole intervals are merged, so
that its CSV, HTML and JSON hold every transaction. Its own listener is set aside for the engine's
transactions alone: other requests of a mixed locustfile are counted as ever.
"""

from collections.abc import Callable
from typing import Any

from locust import stats
from locust.env import Environment

from replayer.engine import Transaction
from replayer.load.ledger import is_transaction
from replayer.load.measured import MeasuredInterval, MeasuredRow

__all__ = ["METHOD", "Statistics"]

METHOD = "FILE"
NS_PER_MS = 1e6
NS_PER_S = 1_000_000_000

Handler = Callable[..., None]


class Statistics:
    """The bridge into one environment's statistics.

    Args:
        environment: Locust's.
        begin_epoch_ns: Wall-clock time that the engine's times count from.
        targets: Their names; a transaction is named ``target/transaction`` when there are several.
    """

    def __init__(
        self, environment: Environment, begin_epoch_ns: int, targets: tuple[str, ...]
    ) -> None:
        self._environment = environment
        self._begin_epoch_ns = begin_epoch_ns
        self._targets = targets
        self._set_aside, self._own = _set_locust_aside(environment)

    def release(self) -> None:
        """Let Locust count by itself again: another run brings a bridge of its own."""
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

    def merge(self, interval: MeasuredInterval) -> None:
        """Add what one interval measured."""
        second = (self._begin_epoch_ns + interval.end_ns) // NS_PER_S
        for row in interval.rows:
            if is_transaction(row):
                self._merge_transactions(row, second)
            elif row.phase == "measured" and not row.expected and not _is_whole(row):
                self._merge_error(row, second)

    def fire(self, transaction: Transaction, user: Any, context: dict[str, Any]) -> None:  # noqa: ANN401
        """Tell the listeners of request events of one transaction."""
        failed = None if transaction.error is None else OSError(transaction.error)
        begun_ns = self._begin_epoch_ns + transaction.end_ns - transaction.latency_ns
        self._environment.events.request.fire(
            request_type=METHOD,
            name=self.name_of(transaction.target, transaction.name),
            response_time=transaction.latency_ns / NS_PER_MS,
            response_length=transaction.bytes,
            response=transaction,
            context=context,
            exception=failed,
            start_time=begun_ns / NS_PER_S,
            url=None,
            user=user,
        )

    def _merge_transactions(self, row: MeasuredRow, second: int) -> None:
        recorded = self._environment.stats
        entry = self._make_entry(row, second)
        recorded.entries[entry.name, METHOD].extend(entry)
        recorded.total.extend(entry)

    def _make_entry(self, row: MeasuredRow, second: int) -> stats.StatsEntry:
        histogram = row.histogram
        entry = stats.StatsEntry(
            self._environment.stats, self.name_of(row.target, row.transaction), METHOD
        )
        entry.num_requests = histogram.count
        entry.num_reqs_per_sec[second] = histogram.count
        if not row.expected:
            entry.num_failures = histogram.count
            entry.num_fail_per_sec[second] = histogram.count
        # Locust annotates milliseconds as int, and logs floats as well.
        total_ms = histogram.mean * histogram.count / NS_PER_MS
        entry.total_response_time = total_ms  # type: ignore[assignment]
        entry.min_response_time = histogram.min / NS_PER_MS  # type: ignore[assignment]
        entry.max_response_time = histogram.max / NS_PER_MS  # type: ignore[assignment]
        entry.total_content_length = row.bytes
        entry.last_request_timestamp = float(second)
        for value_ns, count in histogram.buckets():
            entry.response_times[stats.bucket_response_time(value_ns / NS_PER_MS)] += count
        return entry

    def _merge_error(self, row: MeasuredRow, second: int) -> None:
        errors = self._environment.stats.errors
        name = self.name_of(row.target, row.transaction)
        text = f"{row.op}: {row.outcome}"
        key = stats.StatsError.create_key(METHOD, name, text)
        error = errors.setdefault(key, stats.StatsError(METHOD, name, text))
        error.occurrences += row.histogram.count
        error.first_seen = error.first_seen or float(second)
        error.last_seen = float(second)


def _is_whole(row: MeasuredRow) -> bool:
    op: str = row.op
    return op.startswith("transaction")


def _set_locust_aside(environment: Environment) -> tuple[list[Handler], Handler]:
    """Replace the runner's own listeners by one that leaves the engine's transactions out."""
    own = [each for each in _handlers(environment) if each.__module__ == "locust.runners"]

    def count_others(**event: Any) -> None:  # noqa: ANN401 - a request event holds anything
        if not isinstance(event.get("response"), Transaction):
            for handler in own:
                handler(**event)

    for handler in own:
        environment.events.request.remove_listener(handler)
    environment.events.request.add_listener(count_others)
    return own, count_others


def _handlers(environment: Environment) -> list[Handler]:
    found: list[Handler] = environment.events.request._handlers  # noqa: SLF001 - no public view
    return found
