"""What goals stand for, and what a run says of them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from replayer.capacity.goals import Goal, count_goal, count_served, goals_of
from replayer.errors import ReplayerError
from replayer.measure.record import RunRecord, load_run
from replayer.verdict.threshold import parse_threshold
from tests.unit.runs import RunWriter, make_run

SLOW, QUICK = 300 * 10**6, 10**6


def goal(text: str) -> Goal:
    (found,) = goals_of([parse_threshold(text, "--threshold")])
    return found


def record(folder: Path, seconds: Sequence[Sequence[int]], unbegun: int = 0) -> RunRecord:
    """Transactions of each second, of which each waited for all but its last millisecond."""
    writer = RunWriter(folder)
    for number, samples in enumerate(seconds):
        place, span = "0/0/measured/view", (number, number + 1)
        writer.record(f"{place}/transaction/ok/expected", samples, span)
        writer.record(f"{place}/transaction.service/ok/expected", [QUICK] * len(samples), span)
        writer.record(f"{place}/transaction.lag/ok/expected", samples, span)
        writer.record(f"{place}/open/ok/expected", samples, span)
        writer.record(f"{place}/open/EIO/unexpected", [QUICK], span)
    ending = {"kind": "ending", "target": 0, "round": 0, "t_s": len(seconds), "unbegun": unbegun}
    return load_run(writer.write(make_run(), [ending]))


def test_slow_ones_are_counted_in_parts_of_equal_time_after_the_load_has_settled(
    tmp_path: Path,
) -> None:
    later = ([QUICK] * 10 + [SLOW] * number for number in range(8))
    seconds = [[SLOW] * 9, [SLOW] * 9, *later]
    found = count_goal(goal("view.p95 < 200ms"), record(tmp_path, seconds))
    assert list(found.ended) == [10, 11, 12, 13, 14, 15, 16, 17]
    assert list(found.bad) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_what_never_began_is_bad_unless_it_is_asked_how_long_the_target_took(
    tmp_path: Path,
) -> None:
    run = record(tmp_path, [[SLOW] * 10] * 10, unbegun=5)
    limit = goal("view.p95 < 200ms")
    assert count_goal(limit, run).bad.sum() == 8 * 10 + 5
    served = count_served(limit, run)
    assert (served.ended.sum(), served.bad.sum()) == (80, 0)


def test_errors_are_a_goal_and_so_is_an_op_of_a_transaction(tmp_path: Path) -> None:
    run = record(tmp_path, [[QUICK] * 9] * 10)
    errors = goal("view/open.errors < 0.1%")
    assert errors.share == pytest.approx(0.001)
    assert (count_goal(errors, run).ended.sum(), count_goal(errors, run).bad.sum()) == (80, 8)
    times = count_goal(goal("open.p99 < 1s"), run)
    assert times.share == pytest.approx(0.1)


@pytest.mark.parametrize(
    "text",
    [
        "view.mean < 2ms",
        "view.p95 > 2ms",
        "errors == 0",
        "view.errors == 0",
        "nfs:view.p95 < 2ms",
        "view.rate > 2/s",
    ],
)
def test_what_is_no_goal_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ReplayerError) as refused:
        goal(text)
    assert text in str(refused.value)
    assert "front_page.p95" in refused.value.hint
