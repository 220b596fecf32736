"""File operations as the page adds them up."""

from replayer._native import Histogram, Interval, Row
from replayer.run.metrics import Meter, render_metrics
from replayer.web.op_totals import OpTotals


def row(op: str, outcome: str, value_ns: int, count: int) -> Row:
    times = Histogram()
    times.record(value_ns, count)
    return Row(0, 0, "measured", "wait", op, outcome, True, 0, times)  # noqa: FBT003


CUT = Interval(
    0,
    1_000_000_000,
    1,
    (
        row("transaction", "ok", 1000, 3),
        row("transaction", "cancelled", 10**10, 1),
        row("flock", "ok", 500, 3),
        row("flock", "cancelled", 10**10, 1),
    ),
)


def test_what_was_broken_off_is_not_shown() -> None:
    op_totals = OpTotals()
    op_totals.add(CUT)
    assert {op: line.count for (_, _, op), line in op_totals.lines.items()} == {
        "transaction": 3,
        "flock": 3,
    }
    assert all(line.times.max < 2000 for line in op_totals.lines.values())


def test_what_was_broken_off_is_not_served() -> None:
    meter = Meter()
    meter.add(CUT)
    text = render_metrics(meter, "")[0].decode()
    assert "cancelled" not in text
    assert "flock" in text
