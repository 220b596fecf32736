"""Silence: measured seconds in which nothing ended on a target, though much should have.

A mean per interval cannot show them, for there is no interval. Jobs of fio that take turns are
looked at in their own time only. With the engine's watchdog the call that hung is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replayer.analysis.finding import Silence
from replayer.analysis.series import LATENCY, TIMES
from replayer.measure import Key, RunRecord, Seconds, Segment, Span, join_spans

__all__ = ["find_silences"]

SHORTEST_S = 2.0  # chosen: a user notices; shorter ones are in the percentiles
LEAST_EXPECTED = 30.0  # chosen: by chance alone nothing would end 1 time in e^30


@dataclass(frozen=True)
class _Work:
    """What goes on in one stretch of time: all transactions of a segment, or one job of fio.

    Attributes:
        own: From its begin to its end.
        busy: The parts of it in which something ended.
        calls: How much ended.
    """

    own: Span
    busy: list[Span]
    calls: float

    def expected_in(self, gap: Span) -> float:
        """Return how much usually ends in the part of a gap that is its own."""
        rate = self.calls / max(sum(span.end_s - span.start_s for span in self.busy), 1e-9)
        shared_s = min(self.own.end_s, gap.end_s) - max(self.own.start_s, gap.start_s)
        return rate * max(shared_s, 0.0)


def find_silences(record: RunRecord) -> Iterator[Silence]:
    """Yield the silences of each target's measured phases, in order."""
    names = {target.index: target.name for target in record.run.targets}
    for segment in sorted(record.spans):
        if segment.phase == "measured" and segment.target in names:
            yield from _silences(record, segment, names[segment.target])


def _silences(record: RunRecord, segment: Segment, name: str) -> Iterator[Silence]:
    works = list(_works(record, segment))
    for gap in _gaps(works):
        length = gap.end_s - gap.start_s
        expected = sum(work.expected_in(gap) for work in works)
        if length >= SHORTEST_S and expected >= LEAST_EXPECTED:
            op, path = _hung(record, segment.target, gap)
            yield Silence(
                target=name,
                at_s=gap.start_s,
                length_s=length,
                expected=expected,
                op=op,
                path=path,
            )


def _works(record: RunRecord, segment: Segment) -> Iterator[_Work]:
    """Yield what went on; between jobs that take turns lie layouts and other targets' turns."""
    own = {key: found for key, found in record.seconds.items() if key.segment == segment}
    if record.run.load.order == "together":
        if own:
            busy = join_spans(span for found in own.values() for span in _spans(found))
            yield _Work(record.spans[segment], busy, _calls(own))
        return
    for key, whole in own.items():
        if key.op == LATENCY and key.expected:
            job = {each: own[each] for each in own if each.transaction == key.transaction}
            span = Span(float(whole.start_s.min()), float(whole.end_s.max()))
            yield _Work(span, join_spans(_spans(_punctual(whole))), _calls(job))


def _punctual(found: Seconds) -> Seconds:
    """Return a job's intervals, those that came late without the time before what ended in them.

    fio asks each process before it prints the sums of a second, and a process answers between two
    I/Os: an interval is late by as much as all processes were held.
    """
    lengths = found.end_s - found.start_s
    whole = lengths > 0
    if not whole.any():
        return found
    rate = float(np.median(found.count[whole] / lengths[whole]))
    late = lengths >= float(np.median(lengths[whole])) + SHORTEST_S
    needed_s = np.minimum(found.count / max(rate, 1e-9), lengths)
    return replace(found, start_s=np.where(late, found.end_s - needed_s, found.start_s))


def _spans(found: Seconds) -> Iterator[Span]:
    """Yield the intervals in which something ended."""
    for start, end, count in zip(found.start_s, found.end_s, found.count, strict=True):
        if count:
            yield Span(float(start), float(end))


def _gaps(works: Sequence[_Work]) -> Iterator[Span]:
    """Yield the time in which something went on and nothing ended."""
    busy = join_spans(span for work in works for span in work.busy)
    for own in join_spans(work.own for work in works):
        inside = [span for span in busy if own.start_s <= span.start_s <= own.end_s]
        starts = [own.start_s, *(span.end_s for span in inside)]
        ends = [*(span.start_s for span in inside), own.end_s]
        yield from (Span(start, end) for start, end in zip(starts, ends, strict=True))


def _calls(own: Mapping[Key, Seconds]) -> float:
    """Count ops; transactions where there are none."""
    ops = sum(float(found.count.sum()) for key, found in own.items() if key.op not in TIMES)
    return ops or sum(float(found.count.sum()) for key, found in own.items() if key.op == LATENCY)


def _hung(record: RunRecord, target: int, span: Span) -> tuple[str | None, str | None]:
    """Return the op and path of the longest call that the watchdog saw in a span."""
    seen = [
        event
        for event in record.events
        if event.get("kind") in {"stall", "abandoned"}
        and event.get("target") == target
        and isinstance(event.get("t_s"), int | float)
        and span.start_s <= event["t_s"] <= span.end_s + SHORTEST_S
    ]
    if not seen:
        return None, None
    longest = max(seen, key=lambda event: event.get("age_ns") or 0)
    op, path = longest.get("op"), longest.get("path")
    return (op if isinstance(op, str) else None), (path if isinstance(path, str) else None)
