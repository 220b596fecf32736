"""Steps and drift of a run: the shifts of its series, placed in time and put in words' reach.

An op that changes together with a transaction is named with it; one that changes alone, and takes
a part of the time worth speaking of, stands for itself.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from replayer.analysis.drift import find_slope
from replayer.analysis.finding import Drift, Step
from replayer.analysis.series import TIMES, Series
from replayer.analysis.steps import Shift, find_shifts
from replayer.measure import RunRecord

__all__ = ["find_changes"]

TOGETHER_INTERVALS = 2.5  # chosen: changes that many intervals apart are one
WORTH_SHARE = 0.05  # chosen: of the target's time in ops


def find_changes(
    record: RunRecord, series: Sequence[Series]
) -> tuple[tuple[Step, ...], tuple[Drift, ...]]:
    """Return the steps in order of time, and the drifts of what has no steps."""
    steps: list[Step] = []
    drifts: list[Drift] = []
    for one in sorted(worth(series), key=lambda item: item.kind == "op"):
        shifts = find_shifts(one.means_ns, one.lengths_s)
        steps.extend(_step(record, one, shifts, number) for number in range(len(shifts)))
        drifts.extend(_drifts(record, one) if not shifts else ())
    merged = sorted(_merged(steps, _interval_s(series)), key=lambda step: step.at_s)
    led = {(drift.target, drift.factor > 1) for drift in drifts if drift.kind == "transaction"}
    alone = (
        drift
        for drift in drifts
        if drift.kind == "transaction" or (drift.target, drift.factor > 1) not in led
    )
    return tuple(merged), tuple(alone)


def worth(series: Sequence[Series]) -> Iterator[Series]:
    """Yield transactions, and the ops that take a part of their target's time."""
    totals: dict[int, float] = {}
    for one in series:
        if one.kind == "op":
            totals[one.target] = totals.get(one.target, 0.0) + one.time_ns
    for one in series:
        if one.kind == "transaction" or one.time_ns >= WORTH_SHARE * totals[one.target]:
            yield one


def _step(record: RunRecord, series: Series, shifts: Sequence[Shift], number: int) -> Step:
    shift = shifts[number]
    until = shifts[number + 1].index if number + 1 < len(shifts) else series.counts.size
    at_s = float(series.end_s[shift.index] - series.lengths_s[shift.index])
    return Step(
        target=_name(record, series.target),
        subject=series.subject,
        kind=series.kind,
        direction="slower" if shift.after > shift.before else "faster",
        at_s=at_s,
        round=int(series.rounds[shift.index]),
        after_s=float(series.lengths_s[: shift.index].sum()),
        sample=int(series.counts[: shift.index].sum()) + 1,
        before_ns=shift.before,
        after_ns=shift.after,
        factor=shift.factor,
        lasted_s=float(series.lengths_s[shift.index : until].sum()),
        bytes_before=_moved(record, series.target, at_s),
        settled=shift.settled,
        ops=(),
    )


def _moved(record: RunRecord, target: int, until_s: float) -> int:
    """Return the bytes that the measured ops of a target had moved by a time."""
    return int(
        sum(
            float(found.bytes[found.end_s <= until_s].sum())
            for key, found in record.seconds.items()
            if key.segment.target == target
            and key.segment.phase == "measured"
            and key.op not in TIMES
        )
    )


def _drifts(record: RunRecord, series: Series) -> Iterator[Drift]:
    slope = find_slope(series.means_ns)
    if slope is not None:
        yield Drift(
            target=_name(record, series.target),
            subject=series.subject,
            kind=series.kind,
            from_ns=slope.begin,
            to_ns=slope.end,
            factor=slope.end / slope.begin,
            over_s=float(series.lengths_s.sum()),
        )


def _merged(steps: Sequence[Step], interval_s: float) -> Iterator[Step]:
    """Yield steps, those of ops named with the transaction that they go with."""
    leading = [step for step in steps if step.kind == "transaction"]
    following: dict[int, list[str]] = {}
    for step in steps:
        if step.kind == "transaction":
            continue
        leaders = [
            place
            for place, other in enumerate(leading)
            if other.target == step.target
            and other.direction == step.direction
            and abs(other.at_s - step.at_s) <= TOGETHER_INTERVALS * interval_s
        ]
        for place in leaders:
            following.setdefault(place, []).append(step.subject)
        if not leaders:
            yield step
    for place, step in enumerate(leading):
        yield step.model_copy(update={"ops": tuple(following.get(place, ()))})


def _interval_s(series: Sequence[Series]) -> float:
    lengths = [one.end_s - one.start_s for one in series if one.counts.size]
    return float(np.median(np.concatenate(lengths))) if lengths else 1.0


def _name(record: RunRecord, index: int) -> str:
    return next(target.name for target in record.run.targets if target.index == index)
