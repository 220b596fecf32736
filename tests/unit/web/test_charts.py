"""What the live page draws: rates of whole intervals, and none of what is left at an end."""

import json
from types import SimpleNamespace
from typing import Any, cast

from replayer._native import Histogram, Interval, Row
from replayer.run.progress import ProgressDisplay
from replayer.run.targets import NamedTarget
from replayer.web.charts import describe_series, parse_look
from replayer.web.run_control import ActiveRun, LiveStatus

S = 1_000_000_000


def interval(
    start_s: float, end_s: float, count: int, turn: int = 0, name: str = "look"
) -> Interval:
    times = Histogram()
    for _ in range(count):
        times.record(1000)
    rows = [
        Row(0, turn, "measured", name, op, "ok", True, moved, times)  # noqa: FBT003
        for op, moved in (("transaction", 0), ("read", count * 1024))
        if count
    ]
    return Interval(int(start_s * S), int(end_s * S), 1, rows)


def drawn(*intervals: Interval) -> dict[str, Any]:
    request = SimpleNamespace(targets=(NamedTarget("near", ()),))
    active = ActiveRun(cast("Any", request), LiveStatus(ProgressDisplay()))
    for each in intervals:
        active.watch(each)
    found: dict[str, Any] = json.loads(json.dumps(describe_series(active, parse_look({}))))
    return found


def test_what_is_left_at_the_end_of_a_turn_has_no_rates() -> None:
    found = drawn(
        interval(0, 1, 1000),
        interval(1, 2, 990),
        interval(2, 2.001, 3),  # 3,000/s, of three transactions
        interval(2.001, 2.004, 0),
    )
    assert found["throughput"] == {"look": [1000.0, 990.0, None, None]}
    assert found["bytes"] == [1_024_000.0, 1_013_760.0, None, None]
    assert sum(count for column in found["heat"] for _, count in column) == 1993


def test_a_second_in_which_all_hang_has_a_rate_of_nothing() -> None:
    found = drawn(interval(0, 1, 1000), interval(1, 2, 0), interval(2, 2.4, 40))
    assert found["throughput"] == {"look": [1000.0, 0.0, 100.0]}


def seconds(*counts: int, turn: int = 0) -> list[Interval]:
    begin = 100 * turn
    return [
        interval(begin + place, begin + place + 1, count, turn)
        for place, count in enumerate(counts)
    ]


def test_a_percentile_is_drawn_over_as_many_seconds_as_hold_its_samples() -> None:
    lines = drawn(*seconds(5, 0, 8, 7, 3, 25))["lines"]["transaction"]
    assert lines["p50_ns"] == [1000, None, 1000, 1000, 1000, 1000]
    assert lines["p95_ns"] == [None, None, None, [1000, 4], None, [1000, 2]]
    assert lines["p99_ns"] == [None] * 6
    lines = drawn(*seconds(*[5] * 25))["lines"]["transaction"]
    assert lines["p99_ns"] == [*[None] * 19, [1000, 20], *[None] * 5]


def test_a_percentile_of_seconds_with_samples_enough_is_that_of_each() -> None:
    lines = drawn(*seconds(20, 30, 99, 100))["lines"]["transaction"]
    assert lines["p95_ns"] == [1000] * 4
    assert lines["p99_ns"] == [None, None, [1000, 3], 1000]


def test_seconds_of_two_turns_are_not_joined() -> None:
    lines = drawn(*seconds(19), *seconds(19, 1, turn=1))["lines"]["transaction"]
    assert lines["p95_ns"] == [None, None, [1000, 2]]


def test_the_transaction_that_ends_most_often_is_the_one_that_is_shown_first() -> None:
    rare, often = interval(0, 1, 1, name="comment"), interval(1, 2, 5, name="static")
    assert drawn(rare, often)["transaction"] == "static"
