"""Stalls in whole run folders whose truth is known."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.unit.analysis.found import found_in, noisy
from tests.unit.runs import RunWriter, make_load


def read_for(writer: RunWriter, seconds: Iterable[int], longest_s: Mapping[int, float]) -> None:
    """A hundred reads in each of these seconds; one of some seconds took long."""
    for second in seconds:
        times = noisy(second, 1e6, 100)
        if second in longest_s:
            times[0] = round(longest_s[second] * 1e9)
        writer.record("0/0/measured/page/read/ok/expected", times, (second, second + 1))


HUNG = {"user": 1, "target": 0, "transaction": "page", "op": "read", "path": "docroot/b.jpg"}


@pytest.mark.parametrize(
    ("event", "at_s", "length_s"),
    [
        # Seen to hang within the gap: it hung to its end.
        ({"t_s": 15.0, "kind": "stall", "age_ns": 5_000_000_000}, 10, 7),
        ({"t_s": 17.6, "kind": "stall_over", "age_ns": 8_100_000_000}, 9.5, 8.1),
        ({"t_s": 17.6, "kind": "slow", "service_ns": 7_200_000_000}, 10.4, 7.2),
        ({"t_s": 30.0, "kind": "abandoned", "age_ns": 19_800_000_000}, 10.2, 6.8),
    ],
)
def test_a_stall_is_found_with_the_call_that_hung(
    tmp_path: Path, event: Mapping[str, object], at_s: float, length_s: float
) -> None:
    writer = RunWriter(tmp_path)
    read_for(writer, (*range(10), *range(17, 30)), {})
    (silence,) = found_in(writer, [{**HUNG, **event}]).silences
    assert (silence.at_s, silence.length_s) == pytest.approx((at_s, length_s))
    # As many as in the time in which nothing stalled.
    assert silence.expected == pytest.approx(2300 / (30 - length_s) * length_s)
    assert (silence.op, silence.path) == ("read", "docroot/b.jpg")


def test_a_stall_is_as_long_as_the_call_that_ended_it(tmp_path: Path) -> None:
    """Nothing ended from 10.4 s to 12.8 s, though only one second is empty."""
    writer = RunWriter(tmp_path)
    read_for(writer, (*range(11), *range(12, 30)), {12: 2.4})
    (silence,) = found_in(writer).silences
    assert silence.length_s == pytest.approx(2.4, rel=0.01)
    assert 10 <= silence.at_s <= 11
    assert (silence.op, silence.path) == (None, None)


def test_a_stall_is_that_of_the_call_whose_event_tells_of_it(tmp_path: Path) -> None:
    """The histogram rounds the longest time up; shorter calls beside it do not count."""
    writer = RunWriter(tmp_path)
    read_for(writer, (*range(11), *range(12, 30)), {12: 2.4})
    told = {**HUNG, "t_s": 12.9, "kind": "slow", "service_ns": 2_399_500_000}
    beside = {**told, "service_ns": 2_100_000_000, "path": "docroot/a.jpg"}
    (silence,) = found_in(writer, [beside, told]).silences
    assert (silence.at_s, silence.length_s) == pytest.approx((10.5005, 2.3995))
    assert (silence.op, silence.path) == ("read", "docroot/b.jpg")
    (silence,) = found_in(writer, [beside]).silences
    assert silence.length_s == pytest.approx(2.4, rel=0.01)
    assert silence.path is None


def test_what_is_shorter_than_a_stall_is_none_wherever_it_falls(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    read_for(writer, (*range(11), *range(12, 30)), {12: 1.98})
    assert found_in(writer).silences == ()


def test_a_call_that_lasted_while_others_ended_stretches_no_gap(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    read_for(writer, (*range(11), *range(12, 30)), {12: 9.0})
    assert found_in(writer).silences == ()


def test_users_who_think_are_no_stall(tmp_path: Path) -> None:
    """180 calls in a moment, each four seconds; nothing at all in the rounds after."""
    writer = RunWriter(tmp_path)
    for second in range(0, 20, 4):
        times = noisy(second, 2e4, 180)
        writer.record("0/0/measured/page/read/ok/expected", times, (second, second + 1))
    phases = [
        {"t_s": float(second), "kind": "phase", "target": 0, "round": number, "phase": phase}
        for second, number, phase in ((0, 0, "measured"), (20, 1, "measured"), (50, 1, "idle"))
    ]
    assert found_in(writer, phases).silences == ()


def test_waiting_for_a_signal_is_no_stall(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    read_for(writer, (*range(10), *range(14, 30)), {})
    writer.record("0/0/measured/page/until/ok/expected", [4_500_000_000], (14, 15))
    waited = {**HUNG, "op": "await", "t_s": 14.5, "kind": "slow", "service_ns": 4_500_000_000}
    assert found_in(writer, [waited]).silences == ()


def play_turns(path: Path, *rows: tuple[int, int, int]) -> RunWriter:
    """A job of fio for ten seconds and, after a layout or another's turn, a second one.

    Whatever is late, the longest I/O of the second after it has lasted for as long.
    """
    writer = RunWriter(path)
    turns = [("read", second, second + 1, 100) for second in range(10)]
    ended = rows[0][0]
    for name, start, end, count in [*turns, *(("write", *row) for row in rows)]:
        times = noisy(start, 1e6, count)
        if name == "write" and count:
            times[0], ended = max(times[0], (end - 1 - ended) * 10**9), end
        writer.transaction(name, times, "0/0", (start, end))
        writer.record(f"0/0/measured/{name}/{name}/ok/expected", times, (start, end))
    return writer


def test_time_between_jobs_that_take_turns_is_no_stall(tmp_path: Path) -> None:
    writer = play_turns(tmp_path, *((second, second + 1, 100) for second in range(20, 30)))
    assert found_in(writer, load=make_load(order="in turn")).silences == ()


@pytest.mark.parametrize(
    "stalled",
    [
        [(24, 25, 0), (25, 26, 0), (26, 27, 0), (27, 28, 100)],
        # fio prints late where its processes are held, and the interval grows as long.
        [(24, 28, 100)],
    ],
)
def test_a_stall_within_the_time_of_a_job_is_found(
    tmp_path: Path, stalled: list[tuple[int, int, int]]
) -> None:
    usual = [(second, second + 1, 100) for second in (*range(20, 24), *range(28, 30))]
    writer = play_turns(tmp_path, *sorted([*usual, *stalled]))
    (silence,) = found_in(writer, load=make_load(order="in turn")).silences
    assert silence.length_s == pytest.approx(3, rel=0.01)
    assert silence.at_s == pytest.approx(24, abs=1)
    assert silence.expected == pytest.approx(300, rel=0.05)
