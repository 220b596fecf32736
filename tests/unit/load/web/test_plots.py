"""What the Latency page draws: rates of whole intervals, and none of what is left at an end."""

from types import SimpleNamespace
from typing import Any, cast

from replayer._native import Histogram
from replayer.load.measured import MadeInterval, MadeRow
from replayer.load.progress import SilentProgress
from replayer.load.targets import Target
from replayer.load.web.board import Board
from replayer.load.web.desk import Playing
from replayer.load.web.plots import describe_series, parse_look

S = 1_000_000_000


def interval(start_s: float, end_s: float, count: int) -> MadeInterval:
    times = Histogram()
    for _ in range(count):
        times.record(1000)
    rows = [
        MadeRow(0, 0, "measured", "look", op, "ok", True, moved, times)  # noqa: FBT003
        for op, moved in (("transaction", 0), ("read", count * 1024))
        if count
    ]
    return MadeInterval(int(start_s * S), int(end_s * S), 1, rows)


def drawn(*intervals: MadeInterval) -> dict[str, Any]:
    request = SimpleNamespace(targets=(Target("near", ()),))
    playing = Playing(cast("Any", request), Board(SilentProgress()))
    for each in intervals:
        playing.watch(each)
    return describe_series(playing, parse_look({}))


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
