"""Transactions that ran one after the other: each has the rate of its own time."""

from pathlib import Path

import pytest

from replayer.measure.hlog import Span, covered_s
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from tests.unit.runs import RunWriter, make_load, make_run


def test_seconds_that_lie_in_several_spans_count_once() -> None:
    assert covered_s([Span(4, 6), Span(0, 1), Span(5, 8), Span(1, 2)]) == 6
    assert covered_s([Span(0, 9), Span(1, 2)]) == 9
    assert covered_s([]) == 0


@pytest.mark.parametrize(("order", "rates"), [("in turn", (50, 25)), ("together", (10, 10))])
def test_the_rate_is_of_the_time_in_which_a_transaction_ran(
    tmp_path: Path, order: str, rates: tuple[float, float]
) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("first", [1000] * 100, span=(0, 2))
    # Between the two, the other target had its turn.
    writer.transaction("second", [1000] * 100, span=(6, 10))
    run = make_run(load=make_load(order=order))
    (target,) = summarise(load_run(writer.write(run))).targets
    assert tuple(found.rate_per_s for found in target.overall.transactions) == rates
    assert target.overall.measured_s == (6 if order == "in turn" else 10)


def test_an_op_of_jobs_side_by_side_is_of_the_time_in_which_any_of_them_ran(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    for number, begin in ((0, 0), (1, 100)):
        for job, start, length in (("a", 0, 10), ("b", 0, 10), ("c", 20, 5)):
            span = (begin + start, begin + start + length)
            writer.transaction(job, [1000] * 100, f"0/{number}", span)
            tag = f"0/{number}/measured/{job}/read/ok/expected"
            writer.record(tag, [1000] * 100, span, moved=3000)
    run = make_run(load=make_load(order="in turn", rounds=2))
    (target,) = summarise(load_run(writer.write(run))).targets
    for part in (target.overall, *target.rounds):
        (read,) = part.ops
        assert (read.rate_per_s, read.bytes_per_s) == (20, 600)
        assert [found.rate_per_s for found in part.transactions] == [10, 10, 20]


def test_rounds_of_jobs_in_turn_add_up(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    for number, begin in ((0, 0), (1, 20)):
        writer.transaction("first", [1000] * 30, place=f"0/{number}", span=(begin, begin + 3))
    run = make_run(load=make_load(order="in turn", rounds=2))
    (target,) = summarise(load_run(writer.write(run))).targets
    assert [part.transactions[0].rate_per_s for part in target.rounds] == [10, 10]
    assert target.overall.transactions[0].rate_per_s == 10
    assert target.overall.measured_s == 6
