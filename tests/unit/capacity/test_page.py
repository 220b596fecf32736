"""The curve of a search."""

from pathlib import Path

from replayer.capacity.found import Found, Point
from replayer.capacity.page import draw_curve
from replayer.capacity.search import Search
from replayer.measure.summarise import summarise
from replayer.run.targets import parse_targets
from tests.unit.capacity.test_goals import QUICK, record
from tests.unit.capacity.test_search import GOAL, order


def test_a_load_that_was_tried_twice_is_drawn_twice(tmp_path: Path) -> None:
    points = []
    for name, time_ns in (("first", QUICK), ("second", 2 * QUICK)):
        run = record(tmp_path / name, [[time_ns] * 400])
        (transaction,) = summarise(run).targets[0].overall.transactions
        point = Point(
            load=10.0,
            holds=True,
            is_of_client=False,
            at_s=0.0,
            seconds=1.0,
            transaction=transaction,
            folder=run.folder,
            slowest="open",
        )
        points.append(point)
    (named,) = parse_targets([f"here={tmp_path}"])
    chart = draw_curve(order(), Found(named, Search([GOAL]), 64, points))
    assert chart is not None
    tips = [mark.attributes["data-tip"] for mark in chart.marks if "data-tip" in mark.attributes]
    assert {"p95 at 10/s: 1.00 ms", "p95 at 10/s: 2.00 ms"} <= set(tips)
