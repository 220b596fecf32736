"""Live figures for Prometheus and what reads its formats: text and OpenMetrics.

Fed interval by interval, as the terminal and the page are; the run folder is the record. Names are
those that OpenTelemetry's rules give in Prometheus: base units (seconds, bytes) and ``_total``.
"""

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gevent.pywsgi import WSGIServer
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from replayer._native import Histogram, Interval, Row
from replayer.errors import OutsideError
from replayer.measure.hlog import CANCELLED, FOUND_END
from replayer.measure.units import NS_PER_S
from replayer.run.addresses import put_address
from replayer.run.ledger import COUNTED
from replayer.run.progress import Hang, Observer, ProgressDisplay, Report, Tick
from replayer.run.web_options import Address

PATH = "/metrics"
WHOLE = "transaction"
BOUNDS_S = (
    *(round(digit * 10.0**power, 9) for power in range(-7, 3) for digit in (1, 2.5, 5)),
    1000.0,
)
"""Chosen: three buckets a decade from 100 ns, below a cached stat, to beyond any patience."""
BOUNDS_NS = tuple(round(bound * NS_PER_S) for bound in BOUNDS_S)

Key = tuple[str, str, str]
"""Target, transaction, op; by names, as the next run from a page may have other targets."""


@dataclass
class _Sum:
    """All that was measured of one op of one transaction on one target."""

    outcomes: dict[tuple[str, bool], int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    seconds: float = 0.0
    bytes: int = 0

    def add(self, row: Row) -> None:
        found = (row.outcome, row.expected)
        self.outcomes[found] = self.outcomes.get(found, 0) + row.histogram.count
        self.bytes += row.bytes
        if row.outcome != FOUND_END:
            self._add_times(row.histogram)

    def _add_times(self, times: Histogram) -> None:
        self.seconds += times.mean * times.count / NS_PER_S
        for value_ns, count in times.buckets():
            self.buckets[bisect_left(BOUNDS_NS, value_ns)] += count

    def cumulative(self) -> list[tuple[str, float]]:
        found, so_far = [], 0
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self.buckets, strict=True):
            so_far += count
            found.append((bound, float(so_far)))
        return found


class Meter:
    """The running sums of a process, and how its run is now.

    Registered with Prometheus' own client, which asks for ``collect``.
    """

    def __init__(self) -> None:
        self._sums: dict[Key, _Sum] = {}
        self._tick: Tick | None = None
        self._names: Sequence[str] = ()

    def follow(self, observer: Observer) -> Observer:
        """Return an observer that this meter is part of."""

        def watch(interval: Interval) -> None:
            self.add(interval)
            observer.watch(interval)

        return Observer(_Overheard(observer.progress, self), watch)

    def add(self, interval: Interval) -> None:
        """Add what an interval measured."""
        for row in interval.rows:
            counted = row.outcome in COUNTED if row.op == WHOLE else row.outcome != CANCELLED
            if row.phase == "measured" and counted and "." not in row.op:
                key = (self._name(row.target), row.transaction, row.op)
                self._sums.setdefault(key, _Sum()).add(row)

    def see(self, tick: Tick | None) -> None:
        """Take the state of a running segment; None when none runs."""
        self._tick = tick
        self._names = tick.targets if tick is not None else self._names

    def collect(self) -> Iterator[Metric]:
        """Yield everything, as Prometheus' client asks for it."""
        yield from self._state()
        yield from self._transactions()
        yield from self._operations()

    def _state(self) -> Iterator[Metric]:
        tick = self._tick
        yield GaugeMetricFamily(
            "replayer_running",
            "1 while a segment of a run is measured.",
            value=float(tick is not None),
        )
        yield GaugeMetricFamily(
            "replayer_users", "Users that are running.", value=float(tick.users if tick else 0)
        )
        yield GaugeMetricFamily(
            "replayer_calls_hanging",
            "Calls that have not returned within the watchdog's limit.",
            value=float(len(tick.hanging) if tick else 0),
        )

    def _transactions(self) -> Iterator[Metric]:
        labels = ["target", "transaction"]
        ended = CounterMetricFamily(
            "replayer_transactions",
            "Transactions that completed in the measured phases.",
            labels=[*labels, "outcome"],
        )
        times = HistogramMetricFamily(
            "replayer_transaction_duration_seconds",
            "From the intended start of a transaction to its end.",
            labels=labels,
        )
        for (target, transaction, op), found in sorted(self._sums.items()):
            if op == WHOLE:
                values = [target, transaction]
                for (outcome, _), count in sorted(found.outcomes.items()):
                    ended.add_metric([*values, outcome], count)
                times.add_metric(values, found.cumulative(), sum_value=found.seconds)
        yield from (ended, times)

    def _operations(self) -> Iterator[Metric]:
        labels = ["target", "transaction", "operation"]
        ended = CounterMetricFamily(
            "replayer_operations",
            "File calls of the measured phases; expected says whether the scenario allows this "
            "outcome.",
            labels=[*labels, "outcome", "expected"],
        )
        times = HistogramMetricFamily(
            "replayer_operation_duration_seconds", "From call to return.", labels=labels
        )
        moved = CounterMetricFamily(
            "replayer_io_bytes", "Bytes read and written by calls.", labels=labels
        )
        for (target, transaction, op), found in sorted(self._sums.items()):
            if op == WHOLE:
                continue
            values = [target, transaction, op]
            for (outcome, expected), count in sorted(found.outcomes.items()):
                ended.add_metric([*values, outcome, str(expected).lower()], count)
            times.add_metric(values, found.cumulative(), sum_value=found.seconds)
            if found.bytes:
                moved.add_metric(values, found.bytes)
        yield from (ended, times, moved)

    def _name(self, target: int) -> str:
        return self._names[target] if target < len(self._names) else str(target)


class _Overheard(ProgressDisplay):
    """A progress display that a meter listens to."""

    def __init__(self, shown: ProgressDisplay, meter: Meter) -> None:
        self._shown = shown
        self._meter = meter

    @contextmanager
    def work(self, title: str) -> Iterator[Report]:
        with self._shown.work(title) as report:
            yield report

    def tick(self, tick: Tick) -> None:
        self._meter.see(tick)
        self._shown.tick(tick)

    def say(self, text: str) -> None:
        self._shown.say(text)

    def alarm(self, hang: Hang) -> None:
        self._shown.alarm(hang)

    def close(self) -> None:
        self._meter.see(None)
        self._shown.close()


def render_metrics(meter: Meter, accept: str) -> tuple[bytes, str]:
    """Return figures as OpenMetrics if a header asks for it, else Prometheus' text; and which."""
    registry = CollectorRegistry()
    registry.register(meter)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def serve_metrics(meter: Meter, address: Address) -> None:
    """Serve the figures until the process ends.

    Raises:
        ReplayerError: The address cannot be used.
    """

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        known = environ["PATH_INFO"] == PATH and environ["REQUEST_METHOD"] in {"GET", "HEAD"}
        if not known:
            missing = HTTPStatus.NOT_FOUND
            start(f"{missing} {missing.phrase}", [("Content-Type", "text/plain")])
            return [f"the figures are at {PATH}\n".encode()]
        text, content_type = render_metrics(meter, environ.get("HTTP_ACCEPT", ""))
        start("200 OK", [("Content-Type", content_type), ("X-Content-Type-Options", "nosniff")])
        return [text]

    where = put_address(address.host, address.port)
    server = WSGIServer((address.host, address.port), answer, log=None, error_log=None)
    try:
        server.start()
    except OSError as error:
        message = f"--metrics {where}: {error.strerror or error}"
        raise OutsideError(message, hint="choose another port") from error
    sys.stderr.write(f"replayer: figures for Prometheus: http://{where}{PATH}\n")
