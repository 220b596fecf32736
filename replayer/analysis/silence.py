"""Silence: measured seconds in which nothing ended on a target while a call was under way.

A mean per interval cannot show them, for there is no interval. Users who think are silent too, and
so a stall needs a call that lasted through it: one of the events, or the longest of the interval
that ends the gap. Jobs of fio that take turns are looked at in their own time only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replayer.analysis.finding import Silence
from replayer.analysis.slots import LATENCY, TIMES
from replayer.measure.hlog import Segment, Span, join_spans
from replayer.measure.record import Event, RunRecord
from replayer.measure.summary import WAITS
from replayer.measure.timeline import Seconds

SHORTEST_S = 2.0  # chosen: a user notices; shorter ones are in the percentiles
LEAST_EXPECTED = 30.0  # chosen: by chance alone nothing would end 1 time in e^30
ROUNDED = 0.001
"""By how much a histogram rounds the longest time of an interval up at most: three digits."""


@dataclass(frozen=True)
class _Busy:
    """An interval in which calls ended, and how long the longest of them took."""

    span: Span
    longest_s: float


@dataclass(frozen=True)
class _Work:
    """What goes on in one stretch of time: all transactions of a segment, or one job of fio."""

    own: Span
    busy: list[_Busy]
    calls: float

    def expected_in(self, gap: Span, stalls: Sequence[Span]) -> float:
        """Return how much usually ends, pauses included, in the part of a gap that is its own."""
        usual_s = _length(self.own) - sum(_shared_s(self.own, stall) for stall in stalls)
        return self.calls / max(usual_s, 1e-9) * _shared_s(self.own, gap)


@dataclass(frozen=True)
class _Gap:
    """Time in which nothing ended, between two intervals in which something did.

    Where they lie at a begin or an end, those intervals are empty.
    """

    before: Span
    after: Span
    longest_s: float

    @property
    def inner(self) -> Span:
        """From the end of the one to the begin of the other."""
        return Span(self.before.end_s, self.after.start_s)

    def under(self, call: Span) -> Span:
        """Return the silence of a call: it may reach into the intervals around the gap."""
        begins = call.start_s >= self.before.start_s
        ends = call.end_s <= self.after.end_s
        return Span(
            call.start_s if begins else self.inner.start_s, call.end_s if ends else self.inner.end_s
        )

    def longest(self) -> Span:
        """Return when the longest call that ended after the gap is likely to have been made."""
        earliest = max(self.after.start_s, self.before.start_s + self.longest_s)
        latest = min(self.after.end_s, self.before.end_s + self.longest_s)
        end_s = (earliest + latest) / 2 if earliest <= latest else self.after.start_s
        return Span(end_s - self.longest_s, end_s)


@dataclass(frozen=True)
class _Call:
    """A call that an event tells of."""

    span: Span
    op: str | None
    path: str | None


def find_silences(record: RunRecord) -> Iterator[Silence]:
    """Yield the silences of each target's measured phases, in order."""
    names = {target.index: target.name for target in record.run.targets}
    for segment in sorted(record.spans):
        if segment.phase == "measured" and segment.target in names:
            yield from _silences(record, segment, names[segment.target])


def _silences(record: RunRecord, segment: Segment, name: str) -> Iterator[Silence]:
    works = list(_works(record, segment))
    found = [
        call
        for gap in _gaps(works)
        if (call := _stalled(gap, record.events, segment.target)) is not None
    ]
    stalls = [call.span for call in found]
    for call in found:
        expected = sum(work.expected_in(call.span, stalls) for work in works)
        if expected >= LEAST_EXPECTED:
            yield Silence(
                target=name,
                at_s=call.span.start_s,
                length_s=_length(call.span),
                expected=expected,
                op=call.op,
                path=call.path,
            )


def _stalled(gap: _Gap, events: Iterable[Event], target: int) -> _Call | None:
    """Return the silence of the call that lasted longest in a gap, if it is long enough."""
    calls = [*_calls(gap, events, target)]
    # An event as long as the longest call is of that very call, and knows when, where and what.
    if all(_length(call.span) < gap.longest_s * (1 - ROUNDED) for call in calls):
        calls.append(_Call(gap.longest(), None, None))
    silences = [replace(call, span=gap.under(call.span)) for call in calls]
    longest = max(silences, key=lambda call: _length(call.span))
    return longest if _length(longest.span) >= SHORTEST_S else None


def _calls(gap: _Gap, events: Iterable[Event], target: int) -> Iterator[_Call]:
    """Yield the calls of events that were under way in a gap."""
    for event in events:
        span = _under_way(gap.inner, event) if event.get("target") == target else None
        if span is not None and _shared_s(span, gap.inner) > 0 and event.get("op") not in WAITS:
            op, path = (event.get(name) for name in ("op", "path"))
            yield _Call(span, *(word if isinstance(word, str) else None for word in (op, path)))


_AGES = {"slow": "service_ns", **dict.fromkeys(("stall", "stall_over", "abandoned"), "age_ns")}


def _under_way(gap: Span, event: Event) -> Span | None:
    """Return from when to when the call of an event was under way, as far as it concerns a gap.

    One that was seen to hang within the gap hung to its end: nothing ended.
    """
    kind, seen_s = event.get("kind"), event.get("t_s")
    age_ns = event.get(_AGES.get(kind, "")) if isinstance(kind, str) else None
    if not isinstance(seen_s, int | float) or not isinstance(age_ns, int | float):
        return None
    hangs = kind == "stall" and seen_s >= gap.start_s
    return Span(seen_s - age_ns / 1e9, max(seen_s, gap.end_s) if hangs else seen_s)


def _works(record: RunRecord, segment: Segment) -> Iterator[_Work]:
    """Yield what went on; between jobs that take turns lie layouts and other targets' turns."""
    own = {key: found for key, found in record.seconds.items() if key.segment == segment}
    ops = {key: found for key, found in own.items() if key.op not in TIMES | WAITS}
    if record.run.load.order == "together":
        if ops:
            yield _work(record.spans[segment], ops.values())
        return
    for key, whole in own.items():
        if key.op == LATENCY and key.expected:
            job = [each for other, each in ops.items() if other.transaction == key.transaction]
            span = Span(float(whole.start_s.min()), float(whole.end_s.max()))
            yield _work(span, map(_punctual, job))


def _work(own: Span, parts: Iterable[Seconds]) -> _Work:
    rows = list(parts)
    busy = [interval for found in rows for interval in _intervals(found)]
    return _Work(own, busy, sum(float(found.count.sum()) for found in rows))


def _punctual(found: Seconds) -> Seconds:
    """Return a job's intervals; from late ones the time before what ended in them is cut.

    fio asks each process before it prints the sums of a second. A process answers between two
    I/Os, so an interval is late by as much as all processes were held.
    """
    lengths = found.end_s - found.start_s
    whole = lengths > 0
    if not whole.any():
        return found
    rate = float(np.median(found.count[whole] / lengths[whole]))
    late = lengths >= float(np.median(lengths[whole])) + SHORTEST_S
    needed_s = np.minimum(found.count / max(rate, 1e-9), lengths)
    return replace(found, start_s=np.where(late, found.end_s - needed_s, found.start_s))


def _intervals(found: Seconds) -> Iterator[_Busy]:
    """Yield the intervals in which something ended."""
    columns = (found.start_s, found.end_s, found.count, found.max_ns)
    for start, end, count, longest in zip(*columns, strict=True):
        if count:
            yield _Busy(Span(float(start), float(end)), float(longest) / 1e9)


def _gaps(works: Sequence[_Work]) -> Iterator[_Gap]:
    """Yield the time in which something went on and nothing ended."""
    for own in join_spans(work.own for work in works):
        before = Span(own.start_s, own.start_s)
        inside = (
            each
            for work in works
            for each in work.busy
            if own.start_s <= each.span.start_s <= own.end_s
        )
        for each in [*_merged(inside), _Busy(Span(own.end_s, own.end_s), 0.0)]:
            if each.span.start_s > before.end_s:
                yield _Gap(before, each.span, each.longest_s)
            before = max(before, each.span, key=lambda span: span.end_s)


def _merged(busy: Iterable[_Busy]) -> list[_Busy]:
    """Return the intervals in order, those with the same begin as one."""
    found: dict[float, _Busy] = {}
    for each in busy:
        known = found.setdefault(each.span.start_s, each)
        longest_s = max(known.longest_s, each.longest_s)
        found[each.span.start_s] = _Busy(known.span.joined(each.span), longest_s)
    return [found[start_s] for start_s in sorted(found)]


def _length(span: Span) -> float:
    return span.end_s - span.start_s


def _shared_s(one: Span, other: Span) -> float:
    """Return how long two spans overlap."""
    return max(min(one.end_s, other.end_s) - max(one.start_s, other.start_s), 0.0)
