"""Seconds of several workers become the run's: every count is there, once."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from replayer._native import Histogram, Interval, Row
from replayer.cluster.recorder import Merger
from replayer.cluster.wire import pack_interval, unpack_interval

S = 1_000_000_000
Told = tuple[int, Interval]


def row(op: str, outcome: str, times: list[int]) -> Row:
    histogram = Histogram()
    for time_ns in times:
        histogram.record(time_ns)
    return Row(0, 0, "measured", "look", op, outcome, outcome == "ok", len(times), histogram)


@st.composite
def tellings(draw: st.DrawFn) -> list[Told]:
    """Intervals of up to three workers, in an order in which they may come."""
    found = []
    for worker in range(draw(st.integers(1, 3))):
        skew_ns = draw(st.integers(-S // 20, S // 20))
        for second in range(draw(st.integers(0, 4))):
            rows = [
                row(draw(st.sampled_from(["open", "read"])), outcome, times)
                for outcome in ("ok", "EIO")
                if (times := draw(st.lists(st.integers(1, 10**9), max_size=5)))
            ]
            start_ns = 10 * S + second * S + skew_ns
            interval = Interval(start_ns, start_ns + S, 2, tuple(rows))
            found.append((worker, second, interval))
    order = draw(st.permutations(found))
    return [(worker, interval) for worker, _, interval in order]


def buckets(intervals: list[Interval]) -> Counter[tuple[str, str, int]]:
    found: Counter[tuple[str, str, int]] = Counter()
    for interval in intervals:
        for each in interval.rows:
            for value_ns, count in each.histogram.buckets():
                found[each.op, each.outcome, value_ns] += count
    return found


@given(tellings(), st.lists(st.integers(8, 20), max_size=4))
def test_the_sum_holds_every_bucket_whenever_seconds_are_handed_on(
    told: list[Told], hands_on: list[int]
) -> None:
    taken: list[Interval] = []
    merger = Merger([taken.append])
    for at, (worker, interval) in enumerate(told):
        merger.add(worker, interval)
        if at < len(hands_on):
            merger.hand_on(hands_on[at] * S)
    merger.hand_on_all()
    assert buckets(taken) == buckets([interval for _, interval in told])
    moved = sum(each.bytes for interval in taken for each in interval.rows)
    assert moved == sum(each.bytes for _, interval in told for each in interval.rows)


def test_seconds_that_begin_almost_together_become_one() -> None:
    taken: list[Interval] = []
    merger = Merger([taken.append])
    for worker, skew_ns in enumerate((0, 3_000_000, -2_000_000)):
        for second in range(3):
            start_ns = (5 + second) * S + skew_ns
            rows = (row("open", "ok", [100, 200]),)
            merger.add(worker, Interval(start_ns, start_ns + S, 4, rows))
    merger.hand_on_all()
    assert [len(interval.rows) for interval in taken] == [1, 1, 1]
    assert [interval.rows[0].histogram.count for interval in taken] == [6, 6, 6]
    assert [interval.users for interval in taken] == [12, 12, 12]
    assert all(later.start_ns == one.end_ns for one, later in pairwise(taken))


def test_a_second_waits_until_everybody_has_told() -> None:
    taken: list[Interval] = []
    merger = Merger([taken.append])
    merger.add(0, Interval(5 * S, 6 * S, 1, (row("open", "ok", [100]),)))
    merger.hand_on(5 * S)
    assert taken == []
    merger.hand_on(6 * S)
    assert len(taken) == 1


@given(tellings())
def test_an_interval_survives_the_wire(told: list[Told]) -> None:
    for _, interval in told:
        again = unpack_interval(pack_interval(interval))
        assert (again.start_ns, again.end_ns, again.users) == (
            interval.start_ns,
            interval.end_ns,
            interval.users,
        )
        assert buckets([again]) == buckets([interval])
