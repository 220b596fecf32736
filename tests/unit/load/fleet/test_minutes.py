"""What workers tell becomes the run's as it comes, whoever is done already."""

import time
from types import SimpleNamespace
from typing import Any, cast

from replayer._native import Histogram
from replayer.load.fleet.minutes import Minutes
from replayer.load.fleet.wire import News, State
from replayer.load.fleet.worker import Worker
from replayer.load.measured import MadeInterval, MadeRow, MeasuredInterval

S = 1_000_000_000


def interval(second: int, users: int) -> MadeInterval:
    histogram, expected = Histogram(), True
    histogram.record(100)
    row = MadeRow(0, 0, "measured", "look", "open", "ok", expected, 1, histogram)
    return MadeInterval(second * S, (second + 1) * S, users, (row,))


def test_a_worker_whose_users_rest_keeps_no_second_back_and_its_users_count() -> None:
    done = Worker(0, "a", {}, 0.0, State(serial=1, running=3, busy=0))
    at_work = Worker(1, "b", {}, 0.0, State(serial=1, running=1, busy=1))
    muster = cast("Any", SimpleNamespace(living=(done, at_work)))
    minutes = Minutes(cast("Any", None), muster, cast("Any", None))
    minutes.begin_ns = time.monotonic_ns() - 10 * S
    taken: list[MeasuredInterval] = []
    minutes.hand_to(taken.append)
    muster.on_news(done, News(done.state, 1, (interval(5, 3),)))
    muster.on_news(at_work, News(at_work.state, 1, tuple(interval(at, 1) for at in (5, 6, 7))))
    assert [(each.start_ns, each.users) for each in taken] == [(5 * S, 4), (6 * S, 4), (7 * S, 4)]


def test_a_second_waits_for_those_at_work_and_for_what_they_told_last() -> None:
    workers = [Worker(at, "ab"[at], {}, 0.0, State(serial=1, running=1, busy=1)) for at in (0, 1)]
    muster = cast("Any", SimpleNamespace(living=workers))
    minutes = Minutes(cast("Any", None), muster, cast("Any", None))
    minutes.begin_ns = time.monotonic_ns() - 10 * S
    taken: list[MeasuredInterval] = []
    minutes.hand_to(taken.append)
    muster.on_news(workers[0], News(workers[0].state, 1, (interval(5, 1), interval(6, 1))))
    assert taken == []
    workers[0].state = workers[1].state = State(serial=1, running=1, busy=0)
    muster.on_news(workers[1], News(workers[1].state, 1, (interval(5, 1),)))
    assert [each.users for each in taken] == [2, 2]
