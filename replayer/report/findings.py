"""What an analysis found, in sentences: shared by the table, the Markdown and the HTML.

Worst first. Words only; what is found is worked out in the analysis.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from replayer.analysis.finding import (
    CLIFF_FACTOR,
    Acknowledged,
    Analysis,
    Between,
    Drift,
    FirstTouch,
    Modes,
    Outliers,
    Silence,
    Step,
    Tail,
    Unfinished,
)
from replayer.analysis.steps import steps_at_once
from replayer.measure.health import RunWarning
from replayer.measure.units import (
    format_bytes,
    format_count,
    format_duration,
    format_factor,
    format_many,
    format_share,
    format_time_ns,
    format_times,
)
from replayer.verdict.threshold import Subject, Threshold


@dataclass(frozen=True)
class Sentence:
    """One finding in words, ``short`` for a headline.

    Its weight is ``alarm`` if it makes figures of the run as a whole misleading.
    """

    label: str
    weight: Literal["alarm", "note"]
    text: str
    short: str = ""


def sentences(analysis: Analysis) -> Iterator[Sentence]:
    """Yield every finding, worst first."""
    yield from map(_steps, steps_at_once(analysis.steps))
    yield from map(_unfinished, analysis.unfinished)
    yield from map(_silence, analysis.silences)
    yield from map(_drift, analysis.drifts)
    yield from map(_first_touch, analysis.first_touches)
    yield from map(_modes, analysis.modes)
    yield from _outliers(analysis.outliers)
    yield from map(_between, analysis.between)
    yield from (found for tail in analysis.tails for found in _tail(tail))


def cliff_warnings(steps: Sequence[Step], thresholds: Iterable[Threshold]) -> Iterator[RunWarning]:
    """Warn of targets that end in a cliff, unless a threshold on cliffs judges that."""
    limits = [each for each in thresholds if each.metric.kind == "cliff"]
    for target in dict.fromkeys(step.target for step in steps):
        stated = [each.subject for each in limits if each.target in {None, target}]
        turns = [step for step in steps if step.target == target and _is_turn(step)]
        last = {(step.kind, step.subject): step for step in turns}
        ends = [
            step
            for step in last.values()
            if step.is_cliff and None not in stated and Subject(step.subject) not in stated
        ]
        for step in sorted(ends, key=lambda step: -step.factor)[:1]:
            yield RunWarning(
                kind="ends in a cliff",
                message=f"{target} ends in a cliff ({step.subject} {format_times(step.factor)})",
                hint="'cliff == 0' would fail it",
            )


def _is_turn(step: Step) -> bool:
    """Whether a cliff begins or ends with it."""
    return step.is_cliff or step.direction == "faster"


def nothing_found(analysis: Analysis) -> str:
    """Say that there is nothing to say; where data were too few, that this proves nothing."""
    if analysis.notes:
        return "Nothing was found; some searches had too few data."
    return "Nothing: no cliffs, stalls, drift, slow begins, groups or outliers were found."


def acknowledgements(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield, for each target, which transactions end with their data where."""
    alike: dict[tuple[str, str], list[str]] = {}
    for found in analysis.acknowledged:
        alike.setdefault((found.target, _acknowledged(found)), []).append(found.transaction)
    for (target, text), transactions in alike.items():
        yield target, f"{', '.join(transactions)}: {text}"


def _steps(steps: Sequence[Step]) -> Sentence:
    first = steps[0]
    slower = first.direction == "slower"
    label = "cliff" if first.is_cliff else "step" if slower else "recovery"
    moved = f", after {format_bytes(first.bytes_before)} moved" if first.bytes_before else ""
    stays = f"for {format_duration(first.lasted_s)}"
    if not first.settled:
        stays += ", then the record ends: too few samples to tell whether it stays"
    changes = "; ".join(_change(step) for step in steps)
    return Sentence(
        label,
        "alarm" if slower else "note",
        f"{first.target} became {first.direction} at {format_duration(first.at_s)} of the run "
        f"({format_duration(first.after_s)} measured{moved}), {stays}: {changes}",
        f"{first.target} became {first.direction} after {format_duration(first.after_s)}{moved}: "
        f"{_change(first)}",
    )


def _change(step: Step) -> str:
    with_it = f", with {', '.join(step.ops)}" if step.ops else ""
    return (
        f"{step.subject} from {format_time_ns(step.before_ns)} to {format_time_ns(step.after_ns)} "
        f"({format_factor(step.factor)}, from sample {format_count(step.sample)} on{with_it})"
    )


def _unfinished(found: Unfinished) -> Sentence:
    """Say that figures of what ended are better than what users felt."""
    ended, others = "none ended", ""
    if found.ended_max_ns is not None:
        ended = f"the longest that ended took {format_time_ns(found.ended_max_ns)}"
        others = ". Means and percentiles are of those that ended"
    told = (
        f"{format_count(found.count)} {found.subject} on {found.target} had not ended when the "
        f"turn did, after {format_time_ns(found.oldest_ns)}"
    )
    longest_ns = found.ended_max_ns or 0
    return Sentence(
        "cut-off",
        "alarm" if found.oldest_ns > CLIFF_FACTOR * longest_ns else "note",
        f"{told}; {ended}{others}",
        f"{told}; {ended}",
    )


def _silence(silence: Silence) -> Sentence:
    hung = "" if silence.op is None else f"; {silence.op} of {silence.path} hung"
    return Sentence(
        "stall",
        "alarm",
        f"nothing ended on {silence.target} for {format_duration(silence.length_s)} from "
        f"{format_duration(silence.at_s)} of the run on, where "
        f"{format_count(round(silence.expected))} calls usually do{hung}",
    )


def _drift(drift: Drift) -> Sentence:
    factor = max(drift.factor, 1 / drift.factor)
    word = "slower" if drift.factor > 1 else "faster"
    return Sentence(
        "drift",
        "alarm" if drift.factor > 1 else "note",
        f"{drift.subject} on {drift.target} became {format_factor(factor)} {word} over the "
        f"{format_duration(drift.over_s)} measured: from {format_time_ns(drift.from_ns)} to "
        f"{format_time_ns(drift.to_ns)}",
    )


def _first_touch(found: FirstTouch) -> Sentence:
    times = format_many(found.rounds, "round")
    return Sentence(
        "first touch",
        "note",
        f"{found.subject} on {found.target} was {format_factor(found.factor)} slower in the first "
        f"{format_duration(found.over_s)} of its {times} than after it: "
        f"{format_time_ns(found.first_ns)}, then {format_time_ns(found.later_ns)}",
    )


def _modes(found: Modes) -> Sentence:
    reading = "" if found.reading is None else f": {found.reading}"
    return Sentence(
        "two groups",
        "note",
        f"{format_share(found.fast_share)} of {_whose(found)} on {found.target} took about "
        f"{format_time_ns(found.fast_ns)}, the others about {format_time_ns(found.slow_ns)}, with "
        f"hardly any between{reading}",
    )


def _whose(found: Modes | Outliers) -> str:
    """Name what the calls are: an op together with its transaction."""
    return found.subject if found.transaction is None else f"{found.transaction}: {found.subject}"


def _outliers(outliers: Sequence[Outliers]) -> Iterator[Sentence]:
    """Yield one sentence a target."""
    for target in dict.fromkeys(found.target for found in outliers):
        own = [found for found in outliers if found.target == target]
        own.sort(key=lambda found: -found.time_share)
        parts = [
            f"{_whose(found)} {format_count(found.count)} of {format_count(found.of)} "
            f"({format_share(found.time_share)} of its time, the longest "
            f"{format_time_ns(found.max_ns)})"
            for found in own
        ]
        text = f"calls of more than 100 times the median on {target}: {', '.join(parts)}"
        yield Sentence("outliers", "note", text)


def _tail(tail: Tail) -> Iterator[Sentence]:
    """Yield who is to blame, where single calls are."""
    if tail.explained < _WORTH_BLAMING:
        return
    calls = ", ".join(f"{found.op} {format_count(found.calls)}" for found in tail.ops)
    paths = "; ".join(
        f"{found.op} of {found.path} {format_count(found.calls)} times" for found in tail.paths
    )
    often = f"; again and again {paths}" if paths else ""
    yield Sentence(
        "tail",
        "note",
        f"of the {format_count(tail.slow)} {tail.transaction} on {tail.target} above "
        f"{tail.percentile} ({format_time_ns(tail.limit_ns)}), at most "
        f"{format_share(tail.explained)} are due to single calls that took as long alone: "
        f"{calls}{often}",
    )


def _between(found: Between) -> Sentence:
    time = format_time_ns(found.p99_ns)
    told = f"1 of 100 {found.transaction} on {found.target} took {time} or more"
    return Sentence(
        "client",
        "alarm",
        f"{told}, of which their calls took {format_time_ns(found.calls_ns)} at most. The rest "
        "passed between calls, while this client had no CPU for them: the p99 is its own",
        f"{told}, but not in their calls: the p99 is this client's",
    )


_WORTH_BLAMING = 0.1  # chosen: single calls that explain less are not the cause


def _acknowledged(found: Acknowledged) -> str:
    ops = ", ".join(f"{promise.op} \N{RIGHTWARDS ARROW} {promise.place}" for promise in found.ops)
    return f"{found.ends} ({found.says}); {ops}"
