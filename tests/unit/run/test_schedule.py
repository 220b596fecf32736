"""The order of segments."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.errors import ReplayerError
from replayer.measure.health import UntilDecided
from replayer.run.controller import Looks
from replayer.run.schedule import default_rounds, fit_rounds, make_duet, make_schedule

COUNTS = st.integers(1, 5)


@given(COUNTS, COUNTS)
def test_each_target_has_one_turn_in_each_round(targets: int, rounds: int) -> None:
    schedule = make_schedule(targets, rounds, None)
    turns = [(segment.round, segment.target) for segment in schedule]
    assert turns == [(turn, target) for turn in range(rounds) for target in range(targets)]


@given(COUNTS, COUNTS, st.integers(1, 10**12))
def test_a_segment_lasts_as_long_as_the_plan_says(targets: int, rounds: int, each: int) -> None:
    assert {segment.duration_ns for segment in make_schedule(targets, rounds, each)} == {each}


def test_one_target_has_one_round_and_several_have_three() -> None:
    assert [default_rounds(targets) for targets in (1, 2, 3)] == [1, 3, 3]


@pytest.mark.parametrize(
    ("targets", "wished_s", "budget_s", "length_s", "most"),
    [
        (2, 10, 300, 10, 15),
        (2, 20, 300, 20, 7),
        (2, 60, 300, 25, 6),  # six rounds fit at least
        (4, 20, 300, 12.5, 6),
        (2, 0.1, 300, 2, 75),  # none is shorter than two intervals
        (2, 10, 20, 2, 5),
        (2, 10, 36_000, 10, 1_000),
    ],
)
def test_rounds_are_as_long_as_wished_if_enough_of_them_fit(
    targets: int, wished_s: float, budget_s: int, length_s: float, most: int
) -> None:
    found = fit_rounds(targets, round(wished_s * 1e9), budget_s)
    assert found == (round(length_s * 1e9), most)
    assert targets * most * length_s <= budget_s or most == 1_000


def test_a_budget_for_less_than_three_rounds_is_refused() -> None:
    with pytest.raises(ReplayerError, match="must be at least 24s, for 3 rounds of 2 s on 4"):
        fit_rounds(4, 10**10, 23)
    assert fit_rounds(4, 10**10, 24) == (2 * 10**9, 3)


def test_a_round_that_would_end_after_the_budget_is_not_begun_but_three_are() -> None:
    looks = Looks(Path(), UntilDecided(precision=0.1, budget_s=60, most_rounds=10))
    assert not looks.is_spent(2, took_s=600)
    assert not looks.is_spent(3, took_s=44)
    assert looks.is_spent(3, took_s=46)


@given(COUNTS, st.integers(1, 10**12))
def test_a_round_of_a_duet_has_each_target_alone_and_both_together(rounds: int, each: int) -> None:
    schedule = make_duet(rounds, each)
    turns = [schedule[place : place + 3] for place in range(0, len(schedule), 3)]
    assert [{part.round for part in turn} for turn in turns] == [{place} for place in range(rounds)]
    for turn in turns:
        assert sorted(sorted(part.targets) for part in turn) == [[0], [0, 1], [1]]
        assert {part.duration_ns for part in turn if part.phase == "measured"} == {each}
        assert all(len(part.targets) == 2 for part in turn if part.phase == "measured")


def test_who_is_alone_first_in_one_round_is_last_in_the_next() -> None:
    one, other = (make_duet(2, 10**10)[place : place + 3] for place in (0, 3))
    assert [part.targets for part in one] == [(0,), (1,), (0, 1)]
    assert [part.targets for part in other] == [(1, 0), (1,), (0,)]
    alone = [part.duration_ns for part in (*one, *other) if part.phase == "alone"]
    assert alone == [25 * 10**8] * 4
