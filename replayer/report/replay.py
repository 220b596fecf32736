"""What a report says of replays: traces, agreement, lateness, order, and the first divergence.

Words and rows; the table, the Markdown and JUnit print them each in its own way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from replayer.measure.health import RunWarning
from replayer.measure.replay import Counted, Divergence, PastEvent, ReplayFacts, counted
from replayer.measure.summary import Statistics, Summary, TargetSummary
from replayer.measure.units import format_count, format_many, format_time_ns
from replayer.report.document import Document

DIVERGENCE_TITLES = ("where", "target", "recorded", "got", "count")
NOTED_SHARE = 0.01
"""Chosen: rounds of one replay differ by more."""
ADVICE = (
    "record it again with --rehearse 20 and run replayer fit on the trace, or replay with "
    "--pace asap"
)
_SHORT = 12  # hexadecimal digits of a checksum that a person compares: chosen
_LATE_NS = 10_000_000
"""Chosen: beyond a timer's slack and a time slice; a schedule that slips so far is another one."""


def describe_traces(replay: ReplayFacts) -> Iterator[tuple[str, str]]:
    """Yield label and text of what was replayed, and of what its traces do not show."""
    for trace in replay.traces:
        threads = f"{format_many(trace.threads, 'thread')}"
        yield (
            "trace",
            (
                f"{trace.name}: {format_count(trace.events)} events of {threads}, recorded over "
                f"{format_time_ns(trace.span_ns)}, checksum {trace.sha256[:_SHORT]}"
            ),
        )
        if trace.untraced_ns is not None:
            took = format_time_ns(trace.untraced_ns)
            yield "  untraced", f"the recorded command took {took} without the tracer, where it ran"
        if trace.pauses_percent is not None:
            yield "  pauses", f"fitted to that time: {trace.pauses_percent} % of those recorded"
        yield "  blind spots", _counted(trace.blind_spots) or "none seen in the recording"
    requests = [each for each in replay.transactions if each.request is not None]
    if requests:
        named = (f"{each.name} is {each.request!r} of {each.trace}" for each in requests)
        yield "  requests", ", ".join(named)
    if replay.lanes is not None:
        threads = f"{format_many(replay.lanes, 'native thread')}"
        yield "  lanes", f"{threads} a user"


def describe_agreement(document: Document) -> Iterator[tuple[str, str]]:
    """Yield label and text of how far a replay agreed with its traces; nothing without results."""
    replay = document.replay
    if replay is None or replay.results is None:
        return
    found = replay.results
    share = _share(found.matched, found.compared)
    allowed = sum(each.count for each in found.allowed)
    otherwise = f"{format_count(allowed)} otherwise as is allowed, " if allowed else ""
    yield (
        "events",
        (
            f"{format_count(found.events)} in {_plays(found.performances)}, "
            f"{format_count(found.compared)} compared: {share} as recorded, "
            f"{otherwise}{format_count(found.divergences)} diverged"
        ),
    )
    if found.omitted:
        yield "left out", _counted(found.omitted)
    if found.allowed:
        yield "allowed", _counted(found.allowed)
    for target in document.summary.targets:
        yield from _lateness(replay, target, len(document.targets))
    if replay.order is not None:
        order = replay.order
        first = f"; the first: {order.first}" if order.first else ""
        yield (
            "order",
            (
                f"{format_count(order.edges)} edges of {_plays(order.performances)} checked, "
                f"{format_count(order.violated)} violated{first}"
            ),
        )
    if replay.event_log is not None:
        yield "event log", replay.event_log


def divergence_rows(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield each way in which events came out otherwise, most frequent first."""
    results = document.replay.results if document.replay is not None else None
    names = {target.index: target.name for target in document.targets}
    ordered = sorted(results.diverged if results else (), key=lambda each: -each.count)
    for each in ordered:
        yield (
            f"{each.transaction}/{each.op}",
            names.get(each.target, str(each.target)),
            each.recorded,
            each.got,
            format_count(each.count),
        )


def first_divergences(document: Document) -> Iterator[tuple[str, Divergence]]:
    """Yield the first divergence of each target, with the target's name."""
    results = document.replay.results if document.replay is not None else None
    examples = results.examples if results is not None else ()
    for target in document.targets:
        first = next((each for each in examples if each.target == target.index), None)
        if first is not None:
            yield target.name, first


def explain_divergence(target: str, found: Divergence) -> Iterator[tuple[str, str]]:
    """Yield label and text of one divergence: what, where, why, and what led to it."""
    yield (
        "event",
        (
            f"row {found.row} of {found.trace}, thread {found.thread}: {found.op} {found.path} "
            f"(on {target}, user {found.user}, performance {found.performance})"
        ),
    )
    yield "recorded", _result(found.recorded, found.result_recorded)
    compared = found.result_recorded is not None or found.got in {"less", "more"}
    yield "got", _result(found.got, found.result_got if compared else None)
    if found.hint:
        yield "likely", found.hint
    if found.history is None:
        return
    if not found.history:
        yield "before it", "no event of the trace had to do with it: it should be as the tree says"
    for number, past in enumerate(found.history):
        yield "" if number else "before it", _past(past)


def schedule_warnings(replay: ReplayFacts | None, summary: Summary) -> Iterator[RunWarning]:
    """Yield a warning for each transaction whose recorded clock could not be kept."""
    timed = {each.name for each in replay.transactions if each.pace == "timed"} if replay else set()
    for target in summary.targets:
        for each in target.overall.transactions:
            late = each.event_lag.p99_ns if each.event_lag is not None else None
            if each.name in timed and late is not None and late > _LATE_NS:
                yield RunWarning(
                    kind="schedule missed",
                    message=f"{each.name} on {target.name}: the schedule was not kept: 1 % of the "
                    f"events began more than {format_time_ns(late)} late",
                    hint="the target or this client is slower than what was recorded: lower "
                    "--speed, or take --pace closed",
                )


def pause_warnings(
    replay: ReplayFacts | None, targets: Sequence[TargetSummary]
) -> Iterator[RunWarning]:
    """Yield a warning if a notable share of a replay's time may be the recorder's."""
    shares = {target.name: _recorder_share(replay, target) for target in targets} if replay else {}
    noted = {name: share for name, share in shares.items() if share >= NOTED_SHARE}
    if not noted:
        return
    shown = ", ".join(
        f"{share:.0%}".replace("%", " %") + (f" ({name})" if len(targets) > 1 else "")
        for name, share in noted.items()
    )
    yield RunWarning(
        kind="recorded pauses",
        message=f"up to {shown} of this replay's time are pauses that the recorder may have made",
        hint=ADVICE,
    )


def _recorder_share(replay: ReplayFacts, target: TargetSummary) -> float:
    """Return how much of users' time in calls and pauses may be the recorder's."""
    found = {each.name: each for each in target.overall.transactions}
    replayed = [each for each in replay.transactions if each.name in found]
    times = {each.name: found[each.name].count for each in replayed}
    recorder_ns = sum(times[each.name] * (each.recorder_ns or 0) for each in replayed)
    pauses_ns = sum(times[each.name] * (each.pauses_ns or 0) for each in replayed)
    calls_ns = sum(
        outcome.count * outcome.mean_ns
        for name in times
        for op in found[name].ops
        for outcome in op.outcomes
    )
    return recorder_ns / (calls_ns + pauses_ns) if recorder_ns else 0.0


def _lateness(
    replay: ReplayFacts, target: TargetSummary, targets: int
) -> Iterator[tuple[str, str]]:
    timed = {each.name for each in replay.transactions if each.pace == "timed"}
    ends = {each.index: each.drift_ns for each in replay.results.targets} if replay.results else {}
    drift = f"; drift at the end {format_time_ns(ends.get(target.index, 0))}"
    where = f" on {target.name}" if targets > 1 else ""
    for each in target.overall.transactions:
        if each.name in timed and each.event_lag is not None and each.event_lag.count:
            yield "lateness", f"{_figures(each.event_lag)}{drift}{where}"


def _figures(late: Statistics) -> str:
    figures = {"p50": late.p50_ns, "p99": late.p99_ns, "max": late.max_ns}
    return ", ".join(
        f"{name} {format_time_ns(value)}" for name, value in figures.items() if value is not None
    )


def _plays(count: int) -> str:
    return f"{format_count(count)} {'play' if count == 1 else 'plays'}"


def _share(matched: int, compared: int) -> str:
    """Return a share that says 100 % only where nothing is missing."""
    if not compared:
        return "none"
    if matched == compared:
        return "100 %"
    hundredths = matched * 10_000 // compared
    return f"{hundredths / 100:.2f} %"


def _past(past: PastEvent) -> str:
    to = f" to {past.to_path}" if past.to_path else ""
    why = {"path": "", "parent": ", a directory above it", "description": ", the same open file"}
    return (
        f"row {past.row}, thread {past.thread}: {past.op} {past.path or ''}{to}: {past.result}"
        f"{why.get(past.why, '')}"
    )


def _result(outcome: str, number: int | None) -> str:
    return outcome if number is None else f"{outcome}, {number:,}"


def format_counts(named: Mapping[str, int]) -> str:
    """Return what was counted by name, most frequent first."""
    return _counted(counted(named))


def _counted(named: Iterable[Counted]) -> str:
    return ", ".join(f"{each.name} {format_count(each.count)}" for each in named)
