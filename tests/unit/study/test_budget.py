"""How a quick study's time is shared, on a clock of the test's own."""

import time

import pytest

from replayer.study.flow import LONGEST_QUICK_S, QUICK_S, Budget, quick_budget


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("targets", [1, 2, 5])
@pytest.mark.parametrize("steps", [2, 3, 6])
@pytest.mark.parametrize("beside_s", [1.0, 6.0, 20.0])
def test_steps_that_take_what_they_need_beside_measuring_end_in_time(
    clock: list[float], targets: int, steps: int, beside_s: float
) -> None:
    budget = Budget(clock[0] + QUICK_S, targets, 3.0)
    for left in range(steps, 0, -1):
        share = budget.share(left)
        took_s = min(share.seconds * targets + beside_s, share.limit_s)
        clock[0] += took_s
        budget.learn(share, took_s)
    assert clock[0] <= 1_000.0 + QUICK_S


def test_a_slow_step_leaves_the_next_ones_less_to_measure_and_not_too_little_time(
    clock: list[float],
) -> None:
    budget = Budget(clock[0] + 80.0, 2, 3.0)
    first = budget.share(2)
    clock[0] += 44.0
    budget.learn(first, 44.0)
    second = budget.share(1)
    assert second.seconds * 2 + 14 <= second.limit_s
    assert second.seconds < LONGEST_QUICK_S


def test_no_step_is_left_without_a_second(clock: list[float]) -> None:
    share = Budget(clock[0] - 5.0, 3, 3.0).share(4)
    assert (share.limit_s, share.seconds) == (0.0, 1)


def test_the_time_counts_from_the_start_of_the_process() -> None:
    budget = quick_budget(1)
    assert budget.end < time.monotonic() + QUICK_S
    assert budget.beside_s > 0
