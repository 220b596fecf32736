"""Buckets of which all is known, in time that does not pass."""

import heapq

import numpy as np
import pytest

from replayer.capacity.bucket import Served, find_bucket, suspected_load
from replayer.capacity.goals import Counts, Goal, settling_s
from replayer.capacity.order import Load
from replayer.capacity.search import Search
from replayer.verdict.threshold import Subject
from tests.mounts.station import Bucket, Station
from tests.unit.capacity.test_search import order

LIMIT_S = 0.04
GOAL = Goal("view.p95 < 40ms", Subject("view"), "transaction", 0.05, LIMIT_S * 1e9)
USERS = 64
BETWEEN_S = 3.0


def trial(
    station: Station, load: float, begin_s: float, seconds: int, random: np.random.Generator
) -> tuple[Counts, Served]:
    """Arrivals that wait for a free user, who waits for the station."""
    free_s, done, ended, bad = [begin_s] * USERS, np.zeros(seconds), np.zeros(10), np.zeros(10)
    arrival_s, settled_s = begin_s, begin_s + settling_s(GOAL, seconds)
    while True:
        arrival_s += random.exponential(1 / load)
        asked_s = max(arrival_s, free_s[0])
        if max(arrival_s, asked_s) >= begin_s + seconds:
            break
        end_s = station.end_s(asked_s)
        heapq.heapreplace(free_s, end_s)
        if end_s < begin_s + seconds:
            done[int(end_s - begin_s)] += 1
        if settled_s < end_s < begin_s + seconds:
            part = int((end_s - settled_s) / (begin_s + seconds - settled_s) * 10)
            ended[part] += 1
            bad[part] += end_s - arrival_s > LIMIT_S
    unbegun = max(round(load * (begin_s + seconds - arrival_s)), 0) if arrival_s < asked_s else 0
    ended[-1] += unbegun
    bad[-1] += unbegun
    at_s = begin_s + np.arange(seconds, dtype=np.float64)
    return Counts(ended, bad), Served(load, at_s, np.ones(seconds), done)


@pytest.mark.parametrize("seed", range(10))
def test_the_size_and_the_refill_of_a_bucket_are_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    station = Station(1, 0.004, "exponential", Bucket(8_000, 40.0), seed)
    search, now_s, asked = Search([GOAL]), 0.0, order()
    served: list[Served] = []
    found = None
    while found is None and now_s < asked.budget_s:
        load = suspected_load(served) or search.next_load(Load.ARRIVALS.first)
        seconds = asked.seconds(load, is_bracketed=search.is_bracketed)
        counts, each = trial(station, load, now_s, seconds, random)
        search.learn(load, [counts])
        served.append(each)
        found = find_bucket(served)
        now_s += seconds + BETWEEN_S
    assert found is not None
    bucket, number = found
    assert bucket.refill_per_s == pytest.approx(40, rel=0.1)
    assert bucket.size == pytest.approx(8_000, rel=0.1)
    assert bucket.refill_s == pytest.approx(200, rel=0.15)
    assert number >= 3


def test_a_mount_that_is_slow_all_along_has_none() -> None:
    random, station = np.random.default_rng(1), Station(1, 0.004, "exponential", None, 1)
    trials = [
        trial(station, load, 30.0 * number, 20, random)[1]
        for number, load in enumerate((100, 400, 200, 180))
    ]
    assert find_bucket(trials) is None
