"""The order of segments."""

from hypothesis import given
from hypothesis import strategies as st

from replayer.run.schedule import default_rounds, make_schedule

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
