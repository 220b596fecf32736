"""Change points: where a series of latencies goes from one level to another and stays there.

The test is the self-normalised CUSUM of Shao and Zhang, 'Testing for change points in time series'
(JASA 2010), in seeded windows as by Kovács, Bühlmann, Li and Munk, 'Seeded binary segmentation'
(Biometrika 2023). It needs no estimate of the noise, holds with autocorrelated noise, and works on
logarithms, in which heavy tails are light.

``find_changes`` applies it to a run. An op that changes together with a transaction is named with
it. An op that changes alone is reported if it takes a notable part of the time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.drift import exceedance, find_slope
from replayer.analysis.finding import Drift, Step
from replayer.analysis.slots import TIMES, IntervalSeries
from replayer.measure.record import RunRecord

Floats = NDArray[np.float64]

SHORTEST = 8  # chosen: values on each side of a step, fewer may be a stall
FEWEST = 2 * SHORTEST + 1  # those, and the value in which the step falls
MOST_POINTS = 240  # chosen: longer series are averaged to this many before the search
MOST_SHIFTS = 12  # chosen: more than that is a wave, not steps
CRITICAL = 3_000.0
"""Chosen by simulation: 80,000 series of noise without steps (the kinds of
``tests/unit/analysis/test_noise.py``, normal, and autoregressive of 0.95; 17 to 400 values long,
half of them 17 to 60). The largest statistics were 3,807, 2,242 and 2,230; with 1,500 the levels of
7 series would have lain apart as those of a step do, with 3,000 those of none."""
NOISE_FLOOR = 0.02  # chosen: changes are not looked for below 2 %
LEAST_FACTOR = 1.5  # chosen: smaller steps are not worth a line
ENDING_FACTOR = 32.0  # chosen: a handful of values must shout to be called a step
ENDING_SHARE = 0.5  # chosen: and fill as much time as everything before
ENDING_CHANCE = 1e-6  # chosen: how likely the tail of the values before may make such a value
ENDING_HISTORY = 20  # values before an ending, at least: chosen


@dataclass(frozen=True)
class Shift:
    """A step between two levels, the medians up to the shifts around it.

    ``index`` is the first value after it. It is settled if at least ``SHORTEST`` values follow.
    """

    index: int
    before: float
    after: float
    settled: bool

    @property
    def factor(self) -> float:
        """The higher level to the lower one."""
        return max(self.before, self.after) / min(self.before, self.after)


def find_shifts(values: Floats, lengths: Floats) -> tuple[Shift, ...]:
    """Find the steps of a series of positive values.

    ``lengths`` is how much time each value stands for: with it a single value of an hour after many
    of seconds is a step, and one slow call among thousands is none.
    """
    ending = _ending(values, lengths)
    kept = values[: values.size - ending]
    logs = np.log(np.maximum(kept, np.finfo(np.float64).tiny))
    places = _pruned(logs, _placed(logs))
    edges = [0, *places, kept.size]
    levels = [
        float(np.exp(np.median(logs[low:high]))) for low, high in pairwise(edges) if high > low
    ]
    settled = [
        Shift(place, levels[number], levels[number + 1], settled=True)
        for number, place in enumerate(places)
    ]
    if not ending:
        return tuple(settled)
    after = float(np.median(values[-ending:]))
    return (*settled, Shift(kept.size, levels[-1], after, settled=ending >= SHORTEST))


def _ending(values: Floats, lengths: Floats) -> int:
    """Return how many values at the end stand far beyond all before, and for as much time."""
    most = min(2 * SHORTEST * _block(values.size), values.size - ENDING_HISTORY)
    shares = np.cumsum(lengths[::-1]) / max(float(lengths.sum()), np.finfo(np.float64).tiny)
    for count in range(most, 0, -1):
        if shares[count - 1] < ENDING_SHARE:
            return 0  # and so are all shorter endings
        before, lowest = values[:-count], float(values[-count:].min())
        far = lowest >= ENDING_FACTOR * max(float(np.median(before)), float(before.max()) / 8)
        if far and exceedance(before, lowest) < ENDING_CHANCE:
            return count
    return 0


def _block(size: int) -> int:
    """Return how many values are averaged to one before the search."""
    return -(-size // MOST_POINTS)


def _placed(logs: Floats) -> list[int]:
    """Return where the statistic says that steps are, in order.

    A long series is searched as a whole, coarsely, and then its begin and its end, ever finer.
    """
    places = _searched(logs, 0, logs.size)
    length = logs.size
    while length > MOST_POINTS:
        length = max(length // 4, MOST_POINTS)
        for low in (0, logs.size - length):
            places += [
                place
                for place in _searched(logs, low, low + length)
                if all(abs(place - other) > SHORTEST * _block(logs.size) for other in places)
            ]
    return _refined(logs, sorted(places))


def _searched(logs: Floats, low: int, high: int) -> list[int]:
    """Return where steps are in a part of the series, as exactly as its blocks are short."""
    if high - low < FEWEST:
        return []
    number = -(-(high - low) // _block(high - low))
    short = np.array([part.mean() for part in np.array_split(logs[low:high], number)])
    bounds = np.linspace(low, high, short.size + 1)
    return [round(float(bounds[place])) for place in _chosen(short)]


def _chosen(logs: Floats) -> list[int]:
    """Accept the strongest splits first; each forbids the windows that contain it."""
    found = sorted(_candidates(logs), reverse=True)
    chosen: list[int] = []
    for _, low, high, place in found:
        if len(chosen) < MOST_SHIFTS and not any(low < other < high for other in chosen):
            chosen.append(place)
    return sorted(chosen)


def _candidates(logs: Floats) -> Iterator[tuple[float, int, int, int]]:
    """Yield the statistic, the window and the place of each split that is beyond noise."""
    for width, starts in _layers(logs.size):
        statistic = _statistic(logs[starts[:, None] + np.arange(width)])
        statistic = statistic[:, SHORTEST - 1 : width - 1 - SHORTEST]
        best = statistic.argmax(axis=1)
        for low, place, highest in zip(
            starts.tolist(), best.tolist(), statistic.max(axis=1).tolist(), strict=True
        ):
            if highest > CRITICAL:
                yield highest, low, low + width, low + SHORTEST + place


def _layers(size: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield seeded windows, their width and where they begin.

    Each layer is shorter by the root of two, and half overlaps itself. Those of the shortest begin
    at every value, so that one holds nothing but one end of a level that does not last much longer
    than ``SHORTEST``.
    """
    length = float(size)
    while length > FEWEST:
        width = round(length)
        number = -(-2 * (size - width) // width) + 1
        yield width, np.unique(np.linspace(0, size - width, number).round().astype(np.int64))
        length /= 2**0.5
    if size >= FEWEST:
        yield FEWEST, np.arange(size - FEWEST + 1)


def _statistic(values: Floats) -> Floats:
    """Return, for each row, the statistic of a split at each value but the first and the last.

    The value at the split counts on neither side. The interval of a step holds some of both
    levels: as a part of one level it would look like noise, and hide the step.
    """
    size = values.shape[1] - 1
    centred = values - values.mean(axis=1, keepdims=True)
    left, right = np.cumsum(centred, axis=1), np.cumsum(centred[:, ::-1], axis=1)
    before = np.arange(1, size)
    after, share = size - before, before / size
    noise = (_roughness(left)[:, before - 1] + _roughness(right)[:, after - 1]) / size**2
    floor = NOISE_FLOOR**2 * (share**2 + (1 - share) ** 2) / 6  # that of even noise so strong
    apart = (1 - share) * left[:, before - 1] - share * right[:, after - 1]
    found: Floats = apart**2 / size / (noise + floor)
    return found


def _roughness(sums: Floats) -> Floats:
    """Return, for each row and k, the sum over i ≤ k of (S_i - i/k * S_k) squared."""
    steps = np.arange(1, sums.shape[1] + 1, dtype=np.float64)
    slope, squares = sums / steps, np.cumsum(steps**2)
    crossed = np.cumsum(steps * sums, axis=1)
    found: Floats = np.cumsum(sums**2, axis=1) - 2 * slope * crossed + slope**2 * squares
    return np.maximum(found, 0.0)


def _refined(logs: Floats, places: Sequence[int]) -> list[int]:
    """Move each place to where the levels on its two sides fit best, by absolute distance."""
    edges = [0, *places, logs.size]
    found = []
    for number in range(1, len(edges) - 1):
        low, place, high = edges[number - 1 : number + 2]
        near = np.abs(logs[low:high] - np.median(logs[low:place]))
        far = np.abs(logs[low:high] - np.median(logs[place:high]))
        cost = _sums(near) + (far.sum() - _sums(far))
        inner = cost[SHORTEST : high - low - SHORTEST + 1]
        found.append(low + SHORTEST + int(inner.argmin()) if inner.size else place)
    return found


def _sums(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _pruned(logs: Floats, places: list[int]) -> list[int]:
    """Drop the weakest step until each one parts two levels that hardly overlap."""
    kept = list(places)
    while kept:
        edges = [0, *kept, logs.size]
        gaps = [
            _gap(
                logs[edges[number] : edges[number + 1]], logs[edges[number + 1] : edges[number + 2]]
            )
            for number in range(len(kept))
        ]
        weakest = int(np.argmin(gaps))
        if gaps[weakest] > 0:
            break
        del kept[weakest]
    return kept


def _gap(left: Floats, right: Floats) -> float:
    """Return how far two levels lie apart; 0 or less: too near, or their middles overlap."""
    low, high = sorted((left, right), key=lambda part: float(np.median(part)))
    apart = float(np.median(high) - np.median(low))
    clear = float(np.quantile(high, 0.1) - np.quantile(low, 0.9))  # four fifths of each: chosen
    return min(apart - float(np.log(LEAST_FACTOR)), clear)


TOGETHER_INTERVALS = 2.5  # chosen: changes that many intervals apart are one
WORTH_SHARE = 0.05  # chosen: of the target's time in ops


def find_changes(
    record: RunRecord, series: Sequence[IntervalSeries]
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


def worth(series: Sequence[IntervalSeries]) -> Iterator[IntervalSeries]:
    """Yield transactions, and the ops that take a part of their target's time."""
    totals: dict[int, float] = {}
    for one in series:
        if one.kind == "op":
            totals[one.target] = totals.get(one.target, 0.0) + one.time_ns
    for one in series:
        if one.kind == "transaction" or one.time_ns >= WORTH_SHARE * totals[one.target]:
            yield one


AT_ONCE_S = 3.0
"""Chosen: steps of several transactions that near to each other have one cause."""


def steps_at_once(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Yield steps that came together, the largest first: of one target, direction and time."""
    rest = list(steps)
    while rest:
        first = rest[0]
        together = [
            step
            for step in rest
            if step.target == first.target
            and step.direction == first.direction
            and abs(step.at_s - first.at_s) <= AT_ONCE_S
        ]
        rest = [step for step in rest if step not in together]
        yield sorted(together, key=lambda step: -step.factor)


def _step(record: RunRecord, series: IntervalSeries, shifts: Sequence[Shift], number: int) -> Step:
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


def _drifts(record: RunRecord, series: IntervalSeries) -> Iterator[Drift]:
    slope = find_slope(series.means_ns)
    if slope is not None:
        yield Drift(
            target=_name(record, series.target),
            subject=series.subject,
            kind=series.kind,
            from_ns=slope.begin,
            to_ns=slope.end,
            factor=slope.factor,
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


def _interval_s(series: Sequence[IntervalSeries]) -> float:
    lengths = [one.end_s - one.start_s for one in series if one.counts.size]
    return float(np.median(np.concatenate(lengths))) if lengths else 1.0


def _name(record: RunRecord, index: int) -> str:
    return next(target.name for target in record.run.targets if target.index == index)
