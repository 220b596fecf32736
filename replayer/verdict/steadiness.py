"""How steady a run was, as thresholds limit it: its cliffs counted, its drift with its bounds.

What is held against a limit is what the report shows: the same steps, and the same line through the
same means. Where too little was measured to show a cliff or a drift, its bounds say so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from replayer.analysis import drift, steps
from replayer.analysis.drift import measure_slope
from replayer.analysis.finding import Step
from replayer.analysis.slots import IntervalSeries, chart_series, leading
from replayer.analysis.steps import WORTH_SHARE, find_changes, steps_at_once
from replayer.measure.record import RunRecord
from replayer.measure.run import Outcome
from replayer.measure.units import (
    DASH,
    format_bytes,
    format_count,
    format_duration,
    format_factor,
    format_share,
)
from replayer.verdict.threshold import Threshold

Compares = Callable[[float, float], bool]


@dataclass(frozen=True)
class Bounded:
    """A figure with its bounds."""

    value: float | None
    """None: it cannot be told."""
    low: float
    high: float
    says: str

    def judged(self, compares: Compares, limit: float) -> Outcome:
        """Say whether all that it may be is within a limit, or nothing of it."""
        kept = {compares(self.low, limit), compares(self.high, limit)}
        if self.value is None or len(kept) > 1:
            return "inconclusive"
        return "pass" if True in kept else "fail"


@dataclass(frozen=True)
class Steadiness:
    """How the times of a run changed; that is looked for once, when a threshold asks for it."""

    record: RunRecord

    def figure(self, threshold: Threshold, target: int) -> Bounded:
        """Return what a threshold limits, of one target."""
        subject = threshold.subject
        measure = _cliffs if threshold.metric.kind == "cliff" else _drift
        name = next(each.name for each in self.record.run.targets if each.index == target)
        own = [each for each in self._series if each.target == target]
        found = [each for each in self._steps if each.target == name]
        if subject is not None:
            own = [each for each in own if (each.kind, each.subject) == _transaction(subject)]
            found = [each for each in found if (each.kind, each.subject) == _transaction(subject)]
        if not own:
            return Bounded(None, -inf, inf, f"no {subject or 'call'} was measured on {name}")
        return measure(own, found)

    @cached_property
    def _all(self) -> tuple[IntervalSeries, ...]:
        return chart_series(self.record)

    @cached_property
    def _series(self) -> tuple[IntervalSeries, ...]:
        return tuple(each for each in leading(self._all) if each.counts.size)

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        return find_changes(self.record, self._all)[0]


def _transaction(subject: object) -> tuple[str, str]:
    return "transaction", str(subject)


def _cliffs(series: Sequence[IntervalSeries], found: Sequence[Step]) -> Bounded:
    """Count cliffs; those at once are one. Nobody knows whether the last few samples are one."""
    cliffs = [each[0] for each in steps_at_once(found) if each[0].is_cliff]
    lasting = sum(each.settled for each in cliffs)
    short = [each for each in series if each.counts.size < steps.FEWEST]
    untold = _lacking(short, steps.FEWEST)
    if _is_worth(short, series):
        says = "; ".join([*map(_say_cliff, cliffs), untold])
        return Bounded(float(len(cliffs)) if cliffs else None, lasting, inf, says)
    says = "; ".join([format_count(len(cliffs)), *map(_say_cliff, cliffs), *filter(None, [untold])])
    return Bounded(float(len(cliffs)), lasting, len(cliffs), says)


def _say_cliff(step: Step) -> str:
    moved = f" and {format_bytes(step.bytes_before)}" if step.bytes_before else ""
    stays = "" if step.settled else ", with too few samples to tell whether it stays"
    return (
        f"{step.subject} {format_factor(step.factor)} slower after "
        f"{format_duration(step.after_s)}{moved}{stays}"
    )


def _drift(series: Sequence[IntervalSeries], found: Sequence[Step]) -> Bounded:
    """Return by what share the worst became slower; beside a step there is no telling."""
    stepped = {each.subject for each in found}
    slopes = {
        each.subject: slope
        for each in series
        if each.subject not in stepped and (slope := measure_slope(each.means_ns)) is not None
    }
    low = max((slope.low - 1 for slope in slopes.values()), default=-inf)
    high = max((slope.high - 1 for slope in slopes.values()), default=inf)
    worst = max(slopes, key=lambda name: slopes[name].factor, default=None)
    says, value = [], None
    if worst is not None:
        value = slopes[worst].factor - 1
        interval = f"{_signed(slopes[worst].low - 1)} to {_signed(slopes[worst].high - 1)}"
        says.append(f"{worst} {_signed(value)} ({interval})")
    says += [f"{name} has a step, and no drift is told beside one" for name in sorted(stepped)]
    short = [each for each in series if each.counts.size < drift.SHORTEST]
    says += filter(None, [_lacking(short, drift.SHORTEST)])
    is_told = not stepped and not _is_worth(short, series)
    return Bounded(value, low, high if is_told else inf, "; ".join(says))


def _signed(share: float) -> str:
    if abs(share) == inf or share == -1:
        return DASH
    sign = "+" if share >= 0 else "\N{MINUS SIGN}"
    return f"{sign}{format_share(abs(share))}"


def _is_worth(some: Sequence[IntervalSeries], series: Sequence[IntervalSeries]) -> bool:
    """Whether some take a notable part of the time: without them, nothing is told of all."""
    total = sum(each.time_ns for each in series)
    return sum(each.time_ns for each in some) >= WORTH_SHARE * total if some else False


def _lacking(short: Sequence[IntervalSeries], fewest: int) -> str:
    """Say of what too little was measured; nothing where there is none."""
    counts = ", ".join(f"{each.subject} has {each.counts.size}" for each in short[:MOST_NAMED])
    more = f" and {len(short) - MOST_NAMED} more have too few" * (len(short) > MOST_NAMED)
    return f"too few intervals with samples: {counts} of at least {fewest}{more}" if short else ""


MOST_NAMED = 3  # chosen: of subjects in one sentence
