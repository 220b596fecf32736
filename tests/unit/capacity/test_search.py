"""The search against queues whose capacity theory knows."""

from pathlib import Path

import numpy as np
import pytest

from replayer.capacity.goals import Counts, Goal, settling_s
from replayer.capacity.order import CapacityOrder, Load
from replayer.capacity.search import Search, ratio_of
from replayer.verdict.threshold import Subject

SERVICE_S = 0.004
LIMIT_S = 0.04
SHARE = 0.05
PARTS = 10
GOAL = Goal("view.p95 < 40ms", Subject("view"), "transaction", SHARE, LIMIT_S * 1e9)
CAPACITY = 1 / SERVICE_S - np.log(1 / SHARE) / LIMIT_S
"""Of one server with exponential service: times are exponential with rate 1/S - load (M/M/1)."""
GOOD = Counts(np.full(10, 100.0), np.zeros(10))
BROKEN = Counts(np.full(10, 100.0), np.full(10, 100.0))


def order(budget_s: int = 900) -> CapacityOrder:
    return CapacityOrder(
        "", None, (), [GOAL], Load.ARRIVALS, 0.05, budget_s, 64, (), None, Path(), quiet=True
    )


def trial(load: float, seconds: float, random: np.random.Generator, service_s: float) -> Counts:
    """A queue of one server that begins empty, in parts of equal time once that is forgotten."""
    arrivals = np.cumsum(random.exponential(1 / load, int(load * seconds * 1.2) + 10))
    arrivals = arrivals[arrivals < seconds]
    done = np.cumsum(random.exponential(service_s, arrivals.size))
    # Lindley's recursion by a running maximum.
    ends = done + np.maximum.accumulate(arrivals - np.concatenate([[0], done[:-1]]))
    begin = settling_s(GOAL, seconds)
    settled = ends > begin
    part = ((ends - begin) / (seconds - begin) * PARTS).astype(int)
    part = np.minimum(part, PARTS - 1)[settled]
    bad = (ends - arrivals > LIMIT_S)[settled]
    ended, slow = (np.bincount(part, each, PARTS) for each in (np.ones(part.size), bad))
    return Counts(ended.astype(np.float64), slow.astype(np.float64))


BUDGET_S = 900
"""A quarter of an hour."""


def found(
    seed: int, services_s: tuple[float, ...] = (SERVICE_S,), budget_s: int = BUDGET_S
) -> tuple[Search, float]:
    """Search until it is known; the services of a queue that changes follow each other."""
    random, search, spent_s = np.random.default_rng(seed), Search([GOAL]), 0.0
    asked = order(budget_s)
    while not search.is_known(asked.precision):
        load = search.next_load(10.0)
        seconds = asked.seconds(load, is_bracketed=search.is_bracketed)
        place = min(int(spent_s / 150), len(services_s) - 1)
        search.learn(load, [trial(load, seconds, random, services_s[place])])
        spent_s += seconds
        if spent_s + seconds > asked.budget_s:
            break
    return search, spent_s


@pytest.fixture(scope="module")
def results() -> list[tuple[Search, float]]:
    """Searches that share a quarter of an hour with two others."""
    return [found(seed, budget_s=BUDGET_S // 3) for seed in range(20)]


def test_the_capacity_of_a_queue_is_what_theory_says(results: list[tuple[Search, float]]) -> None:
    intervals = [search.interval for search, _ in results]
    assert sum(abs(each.estimate / CAPACITY - 1) <= 0.05 for each in intervals) >= 19
    assert sum(each.low <= CAPACITY <= each.high for each in intervals) >= 18


def test_a_search_takes_less_than_half_the_time_of_a_ladder_of_20_steps(
    results: list[tuple[Search, float]],
) -> None:
    random = np.random.default_rng(0)

    def tells(seconds: int) -> bool:
        """Whether steps of a length say of 19 in 20 loads 5 % below the capacity that they hold."""
        load = 0.95 * CAPACITY
        held = [trial(load, seconds, random, SERVICE_S).share <= SHARE for _ in range(200)]
        return sum(held) >= 190

    step_s = next(seconds for seconds in (20, 40, 60, 120) if tells(seconds))
    assert np.mean([spent_s for _, spent_s in results]) < 20 * step_s / 2


@pytest.mark.nightly
def test_two_equal_queues_are_not_told_apart() -> None:
    searches = [found(seed)[0] for seed in range(20, 60)]
    ratios = [ratio_of(*pair) for pair in zip(searches[::2], searches[1::2], strict=True)]
    assert sum(not each.low <= 1 <= each.high for each in ratios) <= 1


def test_a_queue_that_becomes_slower_has_moved_and_another_has_not() -> None:
    moved = found(1, (SERVICE_S, SERVICE_S * 2))[0].moved
    assert moved is not None
    assert moved.before.estimate > 1.5 * moved.after.estimate
    assert sum(found(seed)[0].moved is not None for seed in range(3)) == 0


def test_a_load_grows_and_shrinks_until_it_is_known_from_both_sides() -> None:
    search = Search([GOAL])
    assert search.next_load(10) == 10
    search.learn(10, [GOOD])
    assert search.next_load(10) == 40
    search.learn(40, [BROKEN])
    assert search.is_bracketed
    assert 10 < search.next_load(10) < 40
    other = Search([GOAL])
    other.learn(10, [BROKEN])
    assert other.next_load(10) == 2.5


def test_a_trial_is_clear_when_nearly_none_or_all_are_bad_and_there_are_enough_of_them() -> None:
    search = Search([GOAL])
    few = Counts(np.full(1, 20.0), np.zeros(1))
    near = Counts(np.full(10, 1000.0), np.full(10, 40.0))
    many = Counts(np.full(10, 1000.0), np.zeros(10))
    assert not search.is_clear([few])
    assert not search.is_clear([near])
    assert search.is_clear([many])
    assert search.is_clear([BROKEN])


def test_the_goal_that_breaks_first_is_named_and_decides() -> None:
    tail = Goal("view.p99 < 1s", Subject("view"), "transaction", 0.01, 1e9)
    search = Search([GOAL, tail])
    assert search.weakest() == GOAL
    for load, bad, worse in ((10.0, 0, 0), (20.0, 10, 40), (40.0, 60, 90), (15.0, 2, 10)):
        ended = np.full(10, 100.0)
        search.learn(load, [Counts(ended, np.full(10, float(count))) for count in (bad, worse)])
    assert search.weakest() == tail
    alone = Search([GOAL])
    for load, counts in search.trials:
        alone.learn(load, counts[:1])
    assert search.interval.estimate < alone.interval.estimate
