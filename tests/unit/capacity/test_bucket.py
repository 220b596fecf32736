"""Buckets of which all is known, in time that does not pass."""

import heapq
from collections import Counter

import numpy as np
import pytest

from replayer.capacity.bucket import CONFIRM_S, Kind, Served, find_bucket, suspected_load
from replayer.capacity.bucket import Bucket as FoundBucket
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


MEAN, SIGMA = 12_000, 1.4
"""Of the sizes of files: those of a kernel tree, as in the scenario small-reads."""


def trial(  # noqa: PLR0913, PLR0917 - what a trial depends on
    station: Station,
    load: float,
    begin_s: float,
    seconds: int,
    random: np.random.Generator,
    sigma: float = SIGMA,
) -> tuple[Counts, Served]:
    """Arrivals that wait for a free user, who opens and reads a file at the station."""
    free_s, done, ended, bad = [begin_s] * USERS, np.zeros(seconds), np.zeros(10), np.zeros(10)
    moved, calls, reads = np.zeros((3, seconds))
    arrival_s, settled_s = begin_s, begin_s + settling_s(GOAL, seconds)
    while True:
        arrival_s += random.exponential(1 / load)
        asked_s = max(arrival_s, free_s[0])
        if max(arrival_s, asked_s) >= begin_s + seconds:
            break
        size = MEAN * random.lognormal(-(sigma**2) / 2, sigma)
        opened_s = station.end_s(asked_s)
        end_s = station.end_s(opened_s, size)
        for at_s, number in ((opened_s, 0), (end_s, 1)):
            if at_s < begin_s + seconds:
                calls[int(at_s - begin_s)] += 1
                reads[int(at_s - begin_s)] += number
                moved[int(at_s - begin_s)] += number * size
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
    begins_s = begin_s + np.arange(seconds, dtype=np.float64)
    return Counts(ended, bad), Served(load, begins_s, np.ones(seconds), done, moved, calls, reads)


SIZE, REFILL_PER_S = 8_000, 40.0
"""In transactions: of two calls, with as many bytes as a file has, served for 4 ms."""
UNITS = {"call": 2.0, "byte": float(MEAN), "second": 0.004}
KINDS: dict[str, Kind] = {"call": "calls", "byte": "bytes", "second": "neither"}
SEEDS = [range(8), pytest.param(range(100), marks=pytest.mark.nightly)]


def find_by_search(unit: str, seed: int, sigma: float = SIGMA) -> tuple[FoundBucket, int]:
    """Return the bucket that a search finds of a station, and the trial in which it was empty."""
    random, each = np.random.default_rng(seed), UNITS[unit]
    bucket = Bucket(SIZE * each, REFILL_PER_S * each, unit)
    station = Station(1, 0.002, "exponential", bucket, seed)
    search, now_s, asked = Search([GOAL]), 0.0, order()
    served: list[Served] = []
    found = None
    while found is None and now_s < asked.budget_s:
        suspected = suspected_load(served)
        load = suspected or search.next_load(Load.ARRIVALS.first)
        seconds = asked.seconds(load, is_bracketed=search.is_bracketed)
        if suspected:
            seconds = max(seconds, CONFIRM_S)
        counts, own = trial(station, load, now_s, seconds, random, sigma)
        search.learn(load, [counts])
        served.append(own)
        found = find_bucket(served)
        now_s += seconds + BETWEEN_S
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(10))
def test_the_size_and_the_refill_of_a_bucket_are_found(seed: int) -> None:
    bucket, number = find_by_search("call", seed)
    assert bucket.refill_per_s == pytest.approx(REFILL_PER_S, rel=0.1)
    assert bucket.size == pytest.approx(SIZE, rel=0.1)
    assert bucket.refill_s == pytest.approx(200, rel=0.15)
    assert number >= 3


@pytest.mark.parametrize("seeds", SEEDS, ids=len)
@pytest.mark.parametrize(
    ("unit", "sigma", "share"),
    [
        ("call", 0.5, 0.9),
        ("call", 1.4, 0.9),
        ("byte", 0.5, 0.9),
        ("byte", 1.4, 0.4),
        ("second", 0.5, 0.4),
        ("second", 1.4, 0.6),
    ],
)
def test_what_a_bucket_holds_is_found_or_left_open_and_hardly_ever_mistaken(
    unit: str, sigma: float, share: float, seeds: range
) -> None:
    """Least where single files are as large as what a second brings."""
    kinds = Counter(find_by_search(unit, seed, sigma)[0].kind for seed in seeds)
    wrong = kinds.total() - kinds[None] - kinds[KINDS[unit]]
    assert wrong <= len(seeds) / 50
    assert kinds[KINDS[unit]] >= share * len(seeds)


@pytest.mark.parametrize("unit", ["call", "byte"])
def test_files_that_are_all_alike_do_not_tell_bytes_from_calls(unit: str) -> None:
    kinds = {find_by_search(unit, seed, 0.0)[0].kind for seed in range(4)}
    assert kinds <= {None, KINDS[unit]}


def test_a_mount_that_is_slow_all_along_has_none() -> None:
    random, station = np.random.default_rng(1), Station(1, 0.004, "exponential", None, 1)
    trials = [
        trial(station, load, 30.0 * number, 20, random)[1]
        for number, load in enumerate((100, 400, 200, 180))
    ]
    assert find_bucket(trials) is None


def served(load: float, *rates: float) -> Served:
    """So much a second, for ten seconds each."""
    done = np.repeat(np.array(rates), 10)
    at_s = np.arange(float(done.size))
    return Served(load, at_s, np.ones(done.size), done, 1_000 * done, 4 * done, 2 * done)


def test_a_mount_that_serves_less_when_asked_for_too_much_was_not_empty_then() -> None:
    """As a mount in user space did, of which the bucket became empty two trials later."""
    trials = [served(160, 160), served(240, 110, 110), served(160, 160, 160)]
    assert find_bucket(trials) is None
    trials += [served(180, 180, 50), served(160, 50, 50)]
    for number, each in enumerate(trials):
        each.at_s[:] += 30 * number
    found = find_bucket(trials)
    assert found is not None
    bucket, number = found
    assert (number, bucket.refill_per_s, bucket.emptied_at_s) == (3, 50, 100)


def test_a_mount_that_others_slow_down_for_a_while_has_none() -> None:
    """As sshfs was while tests ran beside it: for the end of a trial, and the next ten seconds."""
    slowed = [served(160, 160), served(240, 240, 110), served(160, 110, 110, 160, 160, 160, 160)]
    assert suspected_load(slowed[:2]) == 160
    assert find_bucket(slowed) is None
    assert suspected_load(slowed) is None
    assert find_bucket([*slowed[:2], served(160, 160, *[110] * 5)]) is not None


def test_a_trial_that_asks_for_too_much_before_credits_end_hides_neither_level() -> None:
    trials = [served(160, 160), served(240, 110, 110, 17), served(160, 17, 17)]
    for number, each in enumerate(trials):
        each.at_s[:] += 40 * number
    trials[1].done[:2] = 240
    found = find_bucket(trials)
    assert found is not None
    assert (found[0].refill_per_s, found[0].emptied_at_s) == (17, 60)
