"""What workers tell becomes the run's as it comes, whoever is done already."""

import time
from types import SimpleNamespace
from typing import Any, cast

from replayer._native import Histogram, Interval, Row
from replayer.cluster.recorder import MergedRecorder
from replayer.cluster.wire import News, WorkerState
from replayer.cluster.worker import Worker

S = 1_000_000_000


def interval(second: int, users: int) -> Interval:
    histogram, expected = Histogram(), True
    histogram.record(100)
    row = Row(0, 0, "measured", "look", "open", "ok", expected, 1, histogram)
    return Interval(second * S, (second + 1) * S, users, (row,))


def test_a_worker_whose_users_rest_keeps_no_second_back_and_its_users_count() -> None:
    done = Worker(0, "a", {}, 0.0, WorkerState(serial=1, running=3, busy=0))
    at_work = Worker(1, "b", {}, 0.0, WorkerState(serial=1, running=1, busy=1))
    pool = cast("Any", SimpleNamespace(living=(done, at_work)))
    recorder = MergedRecorder(cast("Any", None), pool, cast("Any", None))
    recorder.begin_ns = time.monotonic_ns() - 10 * S
    taken: list[Interval] = []
    recorder.hand_to(taken.append)
    pool.on_news(done, News(done.state, 1, (interval(5, 3),)))
    pool.on_news(at_work, News(at_work.state, 1, tuple(interval(at, 1) for at in (5, 6, 7))))
    assert [(each.start_ns, each.users) for each in taken] == [(5 * S, 4), (6 * S, 4), (7 * S, 4)]


def test_a_second_waits_for_those_at_work_and_for_what_they_told_last() -> None:
    workers = [
        Worker(at, "ab"[at], {}, 0.0, WorkerState(serial=1, running=1, busy=1)) for at in (0, 1)
    ]
    pool = cast("Any", SimpleNamespace(living=workers))
    recorder = MergedRecorder(cast("Any", None), pool, cast("Any", None))
    recorder.begin_ns = time.monotonic_ns() - 10 * S
    taken: list[Interval] = []
    recorder.hand_to(taken.append)
    pool.on_news(workers[0], News(workers[0].state, 1, (interval(5, 1), interval(6, 1))))
    assert taken == []
    workers[0].state = workers[1].state = WorkerState(serial=1, running=1, busy=0)
    pool.on_news(workers[1], News(workers[1].state, 1, (interval(5, 1),)))
    assert [each.users for each in taken] == [2, 2]
