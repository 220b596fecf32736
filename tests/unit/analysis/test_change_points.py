"""Change points of series of runs: false alarms and what is found, by simulation."""

from collections.abc import Sequence

import numpy as np
import pytest

from replayer.analysis.change_points import LEAST_RUNS, find_changes

RUNS = 30
NOISE = 0.05  # of the logarithm: medians of equal runs differ by some per cent


def simulate(seed: int, step: float = 1.0, at: int = RUNS // 2) -> list[float]:
    """Return the medians of a series of runs, which changes at a place."""
    series = np.exp(np.random.default_rng(seed).normal(0.0, NOISE, RUNS))
    series[at:] *= step
    return [float(value) for value in series]


def alarm_when_watched(series: Sequence[float]) -> bool:
    """Whether a change is told after any of the runs."""
    return any(find_changes(series[:count]) for count in range(LEAST_RUNS, RUNS + 1))


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.nightly)])
def test_a_series_without_a_change_that_is_watched_raises_few_false_alarms(count: int) -> None:
    alarms = sum(alarm_when_watched(simulate(seed)) for seed in range(count))
    assert alarms <= 0.05 * count, f"{alarms} of {count} series raised an alarm"


@pytest.mark.parametrize(("step", "least"), [(1.15, 95), (1 / 1.15, 95), (1.1, 80)])
def test_a_change_is_found_at_its_place_with_its_size(step: float, least: int) -> None:
    found = 0
    for seed in range(100):
        changes = find_changes(simulate(seed, step))
        if len(changes) == 1 and abs(changes[0].place - RUNS // 2) <= 2:
            found += 1
            assert changes[0].ratio == pytest.approx(step, rel=0.08)
    assert found >= least


def test_two_changes_are_told_apart() -> None:
    values = [*[100.0, 101.0, 99.0] * 4, *[140.0, 141.0, 139.0] * 4, *[120.0, 121.0, 119.0] * 4]
    changes = find_changes(values)
    assert [change.place for change in changes] == [12, 24]
    assert [change.ratio for change in changes] == pytest.approx([1.4, 120 / 140])


def test_one_odd_run_and_a_short_series_are_no_change() -> None:
    assert find_changes([100.0, 101.0, 99.0, 100.5, 900.0, 99.5, 100.2, 99.8, 101.1, 98.9]) == []
    assert find_changes([100.0] * 3 + [200.0] * 3) == []
