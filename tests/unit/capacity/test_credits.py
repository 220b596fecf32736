"""What is said of mounts with credits, and of those that showed none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from replayer.capacity.bucket import Bucket, Kind, Served
from replayer.capacity.document import document_of
from replayer.capacity.found import Found, Point
from replayer.capacity.order import Load
from replayer.capacity.search import Interval, Search
from replayer.capacity.table import answer_of, rows_of, titles_of
from replayer.capacity.trial import served_in
from replayer.measure.record import load_run
from replayer.run.targets import parse_targets
from tests.unit.capacity.test_search import GOAL, GOOD, order
from tests.unit.runs import RunWriter, make_run

SERVED = Served(
    load=62.0,
    at_s=np.arange(100.0),
    lasted_s=np.ones(100),
    done=np.full(100, 50.0),
    moved=np.full(100, 125_000.0),
    calls=np.full(100, 200.0),
    data_calls=np.full(100, 100.0),
)
"""100 s, in which 5,000 transactions moved 12.5 MB with 20,000 calls."""


def found_of(folder: Path, bucket: Bucket | None) -> Found:
    (named,) = parse_targets([f"efs={folder}"])
    points = [
        Point(
            load,
            holds=True,
            is_of_client=False,
            at_s=0.0,
            seconds=100.0,
            transaction=None,
            folder=folder,
            slowest=None,
        )
        for load in (20.0, 62.0, 424.0)
    ]
    burst = None if bucket is None else Interval(212.0, 198.0, 221.0)
    return Found(named, Search([GOAL]), 64, points, [SERVED], bucket, burst)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("bytes", "of bytes"),
        ("neither", "of neither bytes nor calls as users made them: of time, or"),
        (None, "of bytes or of calls: not told apart"),
    ],
)
def test_credits_are_told_with_their_size_what_they_are_of_and_how_long_they_last(
    tmp_path: Path, kind: Kind | None, told: str
) -> None:
    one = found_of(tmp_path, Bucket(61_000, 31.0, 600.0, kind))
    (answer,) = answer_of(order(), [one])
    assert answer.startswith(
        "efs  burst 212/s (198 to 221) for 61,000 transactions or 152 MB: at this load credits "
        f"last about 5.6 min · sustained 31/s · refills in about 33 min · {told}"
    )
    assert titles_of(one)[-1] == "credits last"
    assert [row[-1] for row in rows_of(order(), one)] == ["for good", "33 min", "5.6 min"]
    (document,) = document_of(order(), [one])["targets"]
    assert document["bucket"]["of"] == kind
    assert document["bucket"]["calls"] == pytest.approx(61_000 * 4)
    assert document["bucket"]["lasts_s"] == pytest.approx(61_000 / 181)
    lasts_s = [point["credits_last_s"] for point in document["trials"]]
    assert lasts_s == [None, pytest.approx(61_000 / 31), pytest.approx(61_000 / 181)]


def test_without_a_step_it_says_how_large_credits_would_not_have_shown(tmp_path: Path) -> None:
    one = found_of(tmp_path, None)
    (answer,) = answer_of(order(), [one])
    assert "no step within 100 s and 12.5 MB: larger credits would not show" in answer
    assert "credits last" not in titles_of(one)
    (document,) = document_of(order(), [one])["targets"]
    assert document["no_bucket_within"] == {"seconds": 100.0, "bytes": 12_500_000.0}


def test_of_users_nothing_is_claimed_as_nothing_was_looked_for(tmp_path: Path) -> None:
    (answer,) = answer_of(replace(order(), load=Load.USERS), [found_of(tmp_path, None)])
    assert "no step" not in answer


def test_where_the_client_ran_out_no_capacity_is_told_but_how_many_workers_it_takes(
    tmp_path: Path,
) -> None:
    one = found_of(tmp_path, None)
    one.search.learn(340.0, [GOOD])
    one.points += [replace(point, is_of_client=True, holds=False) for point in one.points]
    (answer,) = answer_of(order(), [one])
    assert answer.startswith(
        "efs  at least 340/s: the client ran out · 4 times as many workers (--processes, --master) "
        "could make about 1,400/s"
    )
    (document,) = document_of(order(), [one])["targets"]
    assert (document["capacity"], document["client_ran_out"]) == (None, True)


def test_what_a_run_served_is_read_from_its_timeline(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(3):
        span = (second, second + 1)
        writer.transaction("view", [10**6] * (2 * second), "0/0", span)
        for op, moved in (("open", 0), ("read", 5_000 * second)):
            writer.record(f"0/0/measured/view/{op}/ok/expected", [1_000] * 3, span, moved)
    found = served_in(load_run(writer.write(make_run())), 4.0, 100.0)
    assert list(found.at_s) == [100, 101, 102]
    assert list(found.done) == [0, 2, 4]
    assert list(found.moved) == [0, 5_000, 10_000]
    assert list(found.calls) == [6, 6, 6]
    assert list(found.data_calls) == [3, 3, 3]
