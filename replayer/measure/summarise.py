"""Working out a summary from a run's histograms: adding, counting, leaving out the unsupported.

A record in, a summary out. Only the measured phase counts. Times are those of calls and
transactions that succeeded; failed ones are counted under their outcome, with their own times. Of
calls that never ended only the maximum tells: it is at least as long as they had lasted. Jobs of
fio take turns: their rates use the time in which each was under way.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TypeVar

from replayer._native import Histogram
from replayer.measure.hlog import CANCELLED, Key, Segment, Span, covered_s, join_spans
from replayer.measure.mix import by_weight
from replayer.measure.record import RunRecord
from replayer.measure.summary import (
    PERCENTILE_SAMPLES,
    OutcomeSummary,
    Performance,
    RoundSummary,
    Statistics,
    Summary,
    TargetSummary,
    TransactionSummary,
    by_size,
)


def spans_of(
    record: RunRecord, segment: Segment, transaction: str, op: str | None = None
) -> Iterator[Span]:
    """Yield when a transaction, or an op in it, was under way, where the order is 'in turn'.

    An op has less time than all if they ran one after the other.
    """
    if op is None or transaction not in _verified_after(record):
        yield from record.log.intervals.get((segment, transaction), ())
        return
    for key, seconds in record.seconds.items():
        if (key.segment, key.transaction, key.op) == (segment, transaction, op):
            for start, end in zip(seconds.start_s, seconds.end_s, strict=True):
                yield Span(float(start), float(end))


def _verified_after(record: RunRecord) -> frozenset[str]:
    """Return the jobs that read back what they wrote when all was written, as the plan says."""
    plan = record.plan or {}
    try:
        return frozenset(name for job in plan["jobs"] for name in job["verified_after"])
    except (KeyError, TypeError, AttributeError):
        return frozenset()  # of an earlier version: its directions have one time


LATENCY = "transaction"
SERVICE = "transaction.service"
LAG = "transaction.lag"
PARTS = {"latency": LATENCY, "service": SERVICE, "lag": LAG}
"""The rows of a transaction's times, by the words of thresholds."""
EVENT_LAG = "event.lag"
OUTSIDE = "-"  # the transaction of ops that belong to none

_PERCENT = {"p50_ns": 50.0, "p95_ns": 95.0, "p99_ns": 99.0, "p99_9_ns": 99.9}


@dataclass(frozen=True)
class _Sample:
    """One key of the measured phase."""

    key: Key
    histogram: Histogram
    bytes: int


def summarise(record: RunRecord) -> Summary:
    """Work out what a run measured, per target, over all rounds and in each."""
    samples = sorted(
        (
            _Sample(key, histogram, record.bytes.get(key, 0))
            for key, histogram in record.log.histograms.items()
            if key.segment.phase == "measured"
        ),
        key=_order(record),
    )
    times = _times(record)
    return Summary(
        targets=tuple(
            _target(target.index, target.name, samples, times) for target in record.run.targets
        )
    )


def _order(record: RunRecord) -> Callable[[_Sample], tuple[int, Key]]:
    """Return the order of samples: by the weight of their transactions; in turn, by their names."""
    if record.run.load.order == "in turn":
        return lambda sample: (0, sample.key)
    counts: dict[str, int] = defaultdict(int)
    for key, histogram in record.log.histograms.items():
        counts[key.transaction] += histogram.count if key.op == LATENCY else 0
    places = {name: place for place, name in enumerate(by_weight(counts, record.plan))}
    return lambda sample: (places[sample.key.transaction], sample.key)


_Part = tuple[str, str | None]
"""A transaction and an op in it, or all of it (None)."""


@dataclass(frozen=True)
class _Time:
    """How long was measured."""

    whole_s: float
    """All of it: what rates are per second of."""
    own: Mapping[_Part, tuple[Span, ...]] | None = None
    """When each transaction ran where they did so in turn, and each op in it; None where all ran
    all the time."""
    drain_s: float | None = None
    """What the last transactions took to end when none began any more; None: not known."""
    unbegun: int = 0
    """Transactions that were due in it and never began."""

    def of(self, parts: Iterable[_Part]) -> float:
        """Return the time in which these ran; what they did side by side counts once."""
        if self.own is None:
            return self.whole_s
        return covered_s(span for part in set(parts) for span in self.own.get(part, ()))

    def plus(self, other: "_Time") -> "_Time":
        """Return the time of both."""
        own, drain_s = None, None
        if self.own is not None and other.own is not None:
            parts = {*self.own, *other.own}
            own = {part: (*self.own.get(part, ()), *other.own.get(part, ())) for part in parts}
        if self.drain_s is not None and other.drain_s is not None:
            drain_s = self.drain_s + other.drain_s
        whole_s, unbegun = self.whole_s + other.whole_s, self.unbegun + other.unbegun
        return _Time(whole_s, own, drain_s, unbegun)


_Times = Mapping[tuple[int, int], _Time]
"""By target and round."""


def _times(record: RunRecord) -> _Times:
    measured = {
        segment: span for segment, span in record.spans.items() if segment.phase == "measured"
    }
    if record.run.load.order == "together":
        return {
            (segment.target, segment.round): _together(record, segment, span)
            for segment, span in measured.items()
        }
    found = {}
    for segment in measured:
        keys = [key for key in record.log.histograms if key.segment == segment]
        parts: set[_Part] = {(key.transaction, key.op) for key in keys}
        own = {
            part: tuple(join_spans(spans_of(record, segment, *part)))
            for part in {*parts, *((name, None) for name, _ in parts)}
        }
        found[segment.target, segment.round] = _Time(
            covered_s(chain.from_iterable(own.values())),
            own,
        )
    return found


def _together(record: RunRecord, segment: Segment, span: Span) -> _Time:
    """Return the time of a segment in which all transactions ran side by side.

    A schedule says how many begin in a time, whatever they take: with the time that the last ones
    take to end, its rates would be lower the longer they take and the shorter the run is.
    """
    whole_s = span.end_s - span.start_s
    ending = record.endings.get(segment)
    if ending is None:
        return _Time(whole_s)
    begun_s = min(max(ending.end_s - span.start_s, 0.0), whole_s)
    closed = record.run.load.loop == "closed"
    return _Time(whole_s if closed else begun_s, drain_s=whole_s - begun_s, unbegun=ending.unbegun)


@dataclass(frozen=True)
class Of:
    """Which samples: of a target, and there of a transaction, an op, or an op in a transaction."""

    target: int
    transaction: str | None
    op: str


def samples_of(record: RunRecord, of: Of) -> Histogram:
    """Return the times of the measured calls or transactions that succeeded."""
    return Histogram.merged(
        histogram for key, histogram in _measured_of(record, of) if key.is_timed
    )


def unfinished_of(record: RunRecord, of: Of) -> int | None:
    """Return how long the oldest had lasted of those that never ended; None: all ended."""
    return _oldest_ns(
        histogram for key, histogram in _measured_of(record, of) if key.outcome == CANCELLED
    )


def _measured_of(record: RunRecord, of: Of) -> Iterator[tuple[Key, Histogram]]:
    for key, histogram in record.log.histograms.items():
        if (
            key.segment.phase == "measured"
            and key.segment.target == of.target
            and key.op == of.op
            and of.transaction in {None, key.transaction}
        ):
            yield key, histogram


def latencies_of(record: RunRecord, target: int) -> dict[tuple[str, int], Histogram]:
    """Return the latencies of a target's transactions that succeeded, by name and round."""
    found = _grouped(
        ((key.transaction, key.segment.round), histogram)
        for key, histogram in record.log.histograms.items()
        if key.segment.phase == "measured"
        and key.segment.target == target
        and key.op == LATENCY
        and key.is_timed
    )
    return {place: Histogram.merged(own) for place, own in found.items()}


def statistics_of(histogram: Histogram, unfinished_ns: int | None = None) -> Statistics:
    """Return the figures of a histogram, without percentiles that its count does not support.

    The oldest of those that never ended had lasted for ``unfinished_ns``.
    """
    count = histogram.count
    ended_ns = histogram.max if count else None
    percentiles = {
        name: histogram.percentile(_PERCENT[name]) if count >= needed else None
        for name, needed in PERCENTILE_SAMPLES.items()
    }
    return Statistics(
        count=count,
        mean_ns=histogram.mean if count else None,
        stdev_ns=histogram.stdev if count > 1 else None,
        min_ns=histogram.min if count else None,
        max_ns=max((ns for ns in (ended_ns, unfinished_ns) if ns is not None), default=None),
        unfinished_ns=unfinished_ns,
        **percentiles,
    )


def _target(index: int, name: str, samples: list[_Sample], times: _Times) -> TargetSummary:
    own = [sample for sample in samples if sample.key.segment.target == index]
    rounds = {number: times[target, number] for target, number in sorted(times) if target == index}
    whole = reduce(_Time.plus, rounds.values(), _Time(0.0, {}, 0.0)) if rounds else _Time(0.0)
    return TargetSummary(
        index=index,
        name=name,
        overall=_round(None, own, whole),
        rounds=tuple(
            _round(number, [item for item in own if item.key.segment.round == number], time)
            for number, time in rounds.items()
        ),
    )


def _round(number: int | None, samples: list[_Sample], time: _Time) -> RoundSummary:
    by_name = _grouped((sample.key.transaction, sample) for sample in samples)
    is_a_name = any(sample.key.op == LATENCY for sample in by_name.get(OUTSIDE, []))
    outside = [] if is_a_name else by_name.pop(OUTSIDE, [])
    transactions = tuple(_transaction(name, by_name[name], time) for name in by_size([*by_name]))
    ops = _ops(samples, time)
    failed = sum(found.errors for found in transactions) + _errors(outside)
    return RoundSummary(
        number=number,
        measured_s=time.whole_s,
        drain_s=time.drain_s,
        unbegun=time.unbegun,
        errors=max(failed, sum(found.errors for found in ops)),
        transactions=transactions,
        ops=ops,
        outside=_ops(outside, time),
    )


def _transaction(name: str, samples: list[_Sample], time: _Time) -> TransactionSummary:
    seconds = time.of([(name, None)])
    kinds = _grouped((sample.key.op, sample) for sample in samples)
    whole = kinds.get(LATENCY, [])
    ended = [sample for sample in whole if sample.key.outcome != CANCELLED]
    ops = _ops(samples, time)
    # A transaction moves what its ops move; cut-off ones have moved bytes too.
    moved = sum(op.bytes for op in ops)
    count, errors = _count(ended), _errors(ended)
    return TransactionSummary(
        name=name,
        count=count,
        errors=errors,
        cancelled=_count(whole) - count,
        rate_per_s=_per(count, seconds),
        throughput_per_s=_per(count - errors, seconds),
        bytes=moved,
        bytes_per_s=_per(moved, seconds),
        latency=_succeeded(whole),
        service=_succeeded(kinds.get(SERVICE, [])),
        lag=statistics_of(_ended(kinds.get(LAG, []))),
        event_lag=statistics_of(_ended(kinds[EVENT_LAG])) if EVENT_LAG in kinds else None,
        outcomes=tuple(_outcomes(whole)),
        ops=ops,
    )


def _ops(samples: list[_Sample], time: _Time) -> tuple[Performance, ...]:
    kinds = _grouped((sample.key.op, sample) for sample in samples)
    return tuple(
        _op(op, own, time.of((sample.key.transaction, op) for sample in own))
        for op, own in kinds.items()
        if not _is_transaction(op)
    )


def _op(op: str, samples: list[_Sample], seconds: float) -> Performance:
    count = _count([sample for sample in samples if sample.key.outcome != CANCELLED])
    errors = _errors(samples)
    moved = sum(sample.bytes for sample in samples)
    return Performance(
        op=op,
        count=count,
        errors=errors,
        rate_per_s=_per(count, seconds),
        throughput_per_s=_per(count - errors, seconds),
        bytes=moved,
        bytes_per_s=_per(moved, seconds),
        time=_succeeded(samples),
        outcomes=tuple(_outcomes(samples)),
    )


def _succeeded(samples: list[_Sample]) -> Statistics:
    """Return the figures of what succeeded, with the age of the oldest that never ended."""
    cut = (sample.histogram for sample in samples if sample.key.outcome == CANCELLED)
    return statistics_of(_ended(samples), _oldest_ns(cut))


def _ended(samples: list[_Sample]) -> Histogram:
    """Return the times of what succeeded."""
    return Histogram.merged(sample.histogram for sample in samples if sample.key.is_timed)


def _oldest_ns(unfinished: Iterable[Histogram]) -> int | None:
    """Return the longest of times that are lower bounds, not rounded up; None: there are none."""
    merged = Histogram.merged(unfinished)
    return merged.max_at_least if merged.count else None


def _outcomes(samples: list[_Sample]) -> Iterator[OutcomeSummary]:
    kinds = _grouped(((sample.key.outcome, sample.key.expected), sample) for sample in samples)
    for (outcome, expected), own in kinds.items():
        merged = Histogram.merged(sample.histogram for sample in own)
        yield OutcomeSummary(
            outcome=outcome,
            expected=expected,
            count=merged.count,
            mean_ns=merged.mean,
            max_ns=merged.max,
        )


def _is_transaction(op: str) -> bool:
    return op in {LATENCY, SERVICE, LAG, EVENT_LAG}


def _count(samples: list[_Sample]) -> int:
    return sum(sample.histogram.count for sample in samples)


def _errors(samples: list[_Sample]) -> int:
    return sum(
        sample.histogram.count
        for sample in samples
        if not sample.key.expected and sample.key.outcome != CANCELLED
    )


def _per(amount: int, seconds: float) -> float | None:
    return amount / seconds if seconds > 0 else None


_Group = TypeVar("_Group")
_Member = TypeVar("_Member")


def _grouped(pairs: Iterable[tuple[_Group, _Member]]) -> dict[_Group, list[_Member]]:
    groups: dict[_Group, list[_Member]] = defaultdict(list)
    for key, member in pairs:
        groups[key].append(member)
    return dict(groups)
