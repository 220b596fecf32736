"""Series with known truth: noise must stay silent, and what is in it must be found."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from replayer.analysis.drift import begins_slowly, exceedance, find_slope
from replayer.analysis.steps import Shift, find_shifts

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]
SEEDS = pytest.mark.parametrize(
    "seeds", [range(250), pytest.param(range(1_000), marks=pytest.mark.nightly)], ids=len
)
"""Of each kind of noise."""


def autoregressive(random: np.random.Generator, size: int, memory: float, spread: float) -> Floats:
    """The exponential of a stationary AR(1) process with that standard deviation."""
    shocks = random.normal(size=size + 60) * spread * np.sqrt(1 - memory**2)
    logs = np.zeros(size + 60)
    for place in range(1, logs.size):
        logs[place] = memory * logs[place - 1] + shocks[place]
    found: Floats = np.exp(logs[60:])
    return found


NOISES: dict[str, Noise] = {
    "lognormal": lambda random, size: random.lognormal(sigma=1, size=size),
    "pareto": lambda random, size: 1 + random.pareto(1.1, size),
    "two-groups": lambda random, size: (
        random.lognormal(sigma=0.1, size=size) * np.where(random.random(size) < 0.3, 50, 1)
    ),
    "lone-spikes": lambda random, size: (
        random.lognormal(sigma=0.1, size=size) * np.where(random.random(size) < 0.01, 20, 1)
    ),
    "correlated": lambda random, size: autoregressive(random, size, 0.8, 0.5),
    "strongly-correlated": lambda random, size: autoregressive(random, size, 0.9, 0.5),
}


def times(random: np.random.Generator, level: float, size: int, spread: float = 0.1) -> Floats:
    return level * random.lognormal(sigma=spread, size=size)


def shifts_of(values: Floats) -> list[int]:
    return [shift.index for shift in find_shifts(values, np.ones(values.size))]


@SEEDS
@pytest.mark.parametrize("kind", NOISES)
def test_noise_without_steps_raises_no_alarm_in_a_thousand_seeds(kind: str, seeds: range) -> None:
    alarms = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        values = NOISES[kind](random, int(random.integers(10, 48)))
        if shifts_of(values):
            alarms.append(seed)
    assert alarms == []


@SEEDS
@pytest.mark.parametrize("kind", ["lognormal", "pareto", "correlated"])
def test_calls_one_after_another_raise_no_alarm_either(kind: str, seeds: range) -> None:
    """Here each value is a call, and stands for as much time as it took."""
    alarms = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        values = NOISES[kind](random, 25)
        if find_shifts(values, values):
            alarms.append(seed)
    assert alarms == []


@SEEDS
@pytest.mark.parametrize("kind", ["lognormal", "pareto", "strongly-correlated"])
def test_noise_does_not_drift_in_a_thousand_seeds(kind: str, seeds: range) -> None:
    drifts = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        if find_slope(NOISES[kind](random, int(random.integers(30, 48)))):
            drifts.append(seed)
    assert drifts == []


@SEEDS
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize(("rounds", "size"), [(2, 20), (3, 10)])
def test_rounds_of_noise_do_not_begin_slowly(
    kind: str, rounds: int, size: int, seeds: range
) -> None:
    """By chance 1 in 100,000 would; these tails are too heavy to be known from so few values."""
    alarms = 0
    for seed in seeds:
        values = NOISES[kind](np.random.default_rng(seed), rounds * size)
        alarms += begins_slowly(np.split(values, rounds))
    assert alarms <= 2


@pytest.mark.parametrize(("rounds", "size"), [(1, 20), (2, 9), (3, 7)])
def test_rounds_that_begin_slowly_are_found(rounds: int, size: int) -> None:
    for seed in range(20):
        parts = np.split(times(np.random.default_rng(seed), 1_000, rounds * size), rounds)
        for part in parts:
            part[0] *= 8
        assert begins_slowly(parts)


def published_stream() -> Floats:
    """Study E: about 10 s each until iteration 327, then 4,019 s, 410 times as long."""
    return np.append(times(np.random.default_rng(327), 9.8, 326), 4_019.0)


def test_the_published_cliff_is_found_where_it_was() -> None:
    (cliff,) = find_shifts(published_stream(), published_stream())
    assert cliff.index + 1 == 327
    assert cliff.factor == pytest.approx(410, rel=0.02)
    assert not cliff.settled


@pytest.mark.parametrize("after", [2, 7, 8, 40])
def test_the_published_cliff_is_found_however_long_it_went_on(after: int) -> None:
    slow = times(np.random.default_rng(after), 4_019, after)
    values = np.concatenate([published_stream()[:-1], slow])
    (cliff,) = find_shifts(values, values)
    assert cliff.index + 1 == 327
    assert cliff.factor == pytest.approx(410, rel=0.15)
    assert cliff.settled == (after >= 8)


def test_one_slow_second_at_the_end_of_many_is_no_cliff() -> None:
    values = np.append(times(np.random.default_rng(1), 9.8, 326), 4_019.0)
    assert find_shifts(values, np.ones(values.size)) == ()


@pytest.mark.parametrize(
    ("factor", "place"),
    [(0.4, 60), (2.5, 60), *((big, place) for big in (0.05, 20, 400) for place in (12, 60, 105))],
)
def test_a_step_is_found_within_two_values_of_its_place(factor: float, place: int) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        values = times(random, 1_000, 120)
        values[place:] *= factor
        (shift,) = find_shifts(values, np.ones(120))
        assert abs(shift.index - place) <= 2
        assert shift.factor == pytest.approx(max(factor, 1 / factor), rel=0.1)
        assert (shift.after > shift.before) == (factor > 1)


@pytest.mark.parametrize("size", [20, 24, 30, 37, 44, 60])
@pytest.mark.parametrize("factor", [1 / 133, 20, 133])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_step_within_an_interval_is_found_at_every_place(
    size: int, factor: float, share: float
) -> None:
    """The value in which it falls is the mean of both levels; eight on each side are clean."""
    for place in range(8, size - 8):
        values = times(np.random.default_rng([size, place]), 1_000, size)
        values[place] *= share + (1 - share) * factor
        values[place + 1 :] *= factor
        (shift,) = find_shifts(values, np.ones(size))
        assert shift.index in {place, place + 1}
        assert shift.factor == pytest.approx(max(factor, 1 / factor), rel=0.2)


@pytest.mark.parametrize("size", [17, 18])
def test_eight_clean_values_on_each_side_are_enough(size: int) -> None:
    values = times(np.random.default_rng(size), 1_000, size, 0.02)
    values[8] *= 5
    values[9:] *= 20
    (shift,) = find_shifts(values, np.ones(size))
    assert shift.index in {8, 9}


@pytest.mark.parametrize("size", [30, 40, 60])
def test_nine_slow_values_are_two_steps(size: int) -> None:
    for begin in range(9, size - 18):
        values = times(np.random.default_rng([size, begin]), 1_000, size)
        values[begin : begin + 9] *= 20
        assert shifts_of(values) == [begin, begin + 9]


def test_a_burst_that_comes_back_is_two_steps() -> None:
    random = np.random.default_rng(2)
    values = np.concatenate([times(random, level, 50) for level in (10, 100, 10)])
    assert shifts_of(values) == [50, 100]


def test_a_step_is_found_in_correlated_noise() -> None:
    for seed in range(20):
        values = autoregressive(np.random.default_rng(seed), 200, 0.5, 0.2)
        values[120:] *= 10
        (place,) = shifts_of(values)
        assert abs(place - 120) <= 3


@pytest.mark.parametrize("where", [20, 12_345, 19_970])
def test_a_long_series_keeps_its_place(where: int) -> None:
    values = times(np.random.default_rng(3), 1_000, 20_000)
    values[where:] *= 5
    (place,) = shifts_of(values)
    assert abs(place - where) <= 3


@pytest.mark.parametrize("size", [0, 1, 2, 16])
def test_short_series_have_no_steps(size: int) -> None:
    assert shifts_of(np.full(size, 5.0)) == []


def test_a_constant_series_has_no_steps_and_no_drift() -> None:
    assert shifts_of(np.full(200, 7.0)) == []
    assert find_slope(np.full(200, 7.0)) is None


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_drift_is_found_with_its_size_and_is_no_step(factor: float) -> None:
    for seed in range(20):
        values = times(np.random.default_rng(seed), 100, 150) * factor ** np.linspace(0, 1, 150)
        slope = find_slope(values)
        assert slope is not None
        assert slope.end / slope.begin == pytest.approx(factor, rel=0.1)
        assert shifts_of(values) == []


def test_a_chance_follows_the_tail_of_the_values() -> None:
    values = 1 + np.random.default_rng(4).pareto(2.0, 10_000)
    assert exceedance(values, 1_000.0) == pytest.approx(1e-6, rel=2)
    assert exceedance(values, float(np.quantile(values, 0.99))) == pytest.approx(0.01, rel=0.1)
    assert exceedance(np.array([1.0]), 5.0) == 0.5


def test_a_factor_is_never_below_one() -> None:
    assert Shift(3, 10.0, 2.0, settled=True).factor == Shift(3, 2.0, 10.0, settled=True).factor == 5
