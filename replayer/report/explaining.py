"""Explanations of moments in words, for reports and for the page."""

from collections.abc import Iterator
from itertools import starmap

from replayer.analysis.explain import Call, Explanation, OpShare
from replayer.measure.mountstats import RequestCounts
from replayer.measure.units import (
    format_count,
    format_many,
    format_share,
    format_time_ns,
    format_times,
)

MOST_KINDS = 3  # chosen: what a person reads
MS = 1e6
UNUSUAL = 1.5  # chosen: what is less is hardly seen in a chart


def title_of(found: Explanation) -> str:
    """Return when a moment was."""
    begin, end = found.window
    return f"{begin:.1f} to {end:.1f} s"


def lines_of(found: Explanation) -> Iterator[str]:
    """Yield what made the latency of a moment."""
    for call in found.hung:
        yield f"hung: {_call(call)}{' by then, and went on' if call.goes_on else ''}"
    if found.stood_still_s:
        yield f"the client stood still for {found.stood_still_s:.3g} s"
    if found.cpu_wait_s:
        share = format_share(found.cpu_wait_share)
        yield (
            f"in {found.cpu_wait_s:.3g} s of it users waited for a CPU for {share} of their time "
            "in calls and other work"
        )
    if found.errors:
        told = ", ".join(f"{format_count(count)} {name}" for name, count in found.errors.items())
        yield f"errors: {told}"
    yield from map(_share, found.ops)
    if found.requests:
        kinds = sorted(found.requests.items(), key=lambda item: -item[1].round_trip_ms)
        yield f"NFS requests: {'; '.join(starmap(_request, kinds[:MOST_KINDS]))}"
    if found.slowest:
        yield f"slowest: {'; '.join(map(_call, found.slowest))}"
    if not (found.ops or found.errors or found.hung):
        yield "no call ended"


def _share(found: OpShare) -> str:
    times = found.mean_ns / found.usual_ns if found.usual_ns else 1.0
    beyond = f", {format_times(times)} as long as in the whole run" if times > UNUSUAL else ""
    return (
        f"{found.op}: {format_share(found.share)} of the time in calls, "
        f"{format_many(found.count, 'call')} of {format_time_ns(found.mean_ns)} on average{beyond}"
    )


def _request(kind: str, found: RequestCounts) -> str:
    mean_ns, again = found.execute_ms * MS / found.count, found.transmissions - found.count
    told = f"{format_count(found.count)} {kind} of {format_time_ns(mean_ns)}"
    return f"{told}, {format_count(again)} sent again" if again else told


def _call(found: Call) -> str:
    path = f" {found.path}" if found.path else ""
    return f"{found.op}{path} {format_time_ns(found.time_ns)}"
