"""Silence: measured seconds in which nothing ended on a target, though much should have.

A mean per interval cannot show them, for there is no interval. With the engine's watchdog the call
that hung is named.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from replayer.analysis.finding import Silence
from replayer.analysis.series import LATENCY, TIMES
from replayer.measure import Key, RunRecord, Seconds, Segment, Span

__all__ = ["find_silences"]

SHORTEST_S = 2.0  # chosen: a user notices; shorter ones are in the percentiles
LEAST_EXPECTED = 30.0  # chosen: by chance alone nothing would end 1 time in e^30


def find_silences(record: RunRecord) -> Iterator[Silence]:
    """Yield the silences of each target's measured phases, in order."""
    names = {target.index: target.name for target in record.run.targets}
    for segment in sorted(record.spans):
        if segment.phase == "measured" and segment.target in names:
            yield from _silences(record, segment, names[segment.target])


def _silences(record: RunRecord, segment: Segment, name: str) -> Iterator[Silence]:
    own = {key: found for key, found in record.seconds.items() if key.segment == segment}
    if not own:
        return
    span = record.spans[segment]
    starts = np.unique(np.concatenate([found.start_s for found in own.values()]))
    ends = np.unique(np.concatenate([found.end_s for found in own.values()]))
    gaps = zip([span.start_s, *ends], [*starts, span.end_s], strict=True)
    rate = _calls(own) / max(float((ends - starts).sum()), 1e-9)
    for begin, end in gaps:
        length = float(end - begin)
        if length >= SHORTEST_S and rate * length >= LEAST_EXPECTED:
            op, path = _hung(record, segment.target, Span(float(begin), float(end)))
            yield Silence(
                target=name,
                at_s=float(begin),
                length_s=length,
                expected=rate * length,
                op=op,
                path=path,
            )


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
