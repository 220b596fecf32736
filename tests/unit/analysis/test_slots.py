"""Slots that a chart of a percentile joins."""

from hypothesis import given
from hypothesis import strategies as st

from replayer.analysis.slots import Widening

COUNTS = st.lists(st.integers(0, 30), max_size=60)


def joined(counts: list[int], needed: int) -> list[range]:
    widening = Widening(needed)
    found = (widening.add(place, count) for place, count in enumerate(counts))
    return [places for places in found if places is not None]


@given(COUNTS, st.sampled_from([1, 20, 100]))
def test_joined_slots_hold_the_samples_that_are_needed_and_no_slot_too_many(
    counts: list[int], needed: int
) -> None:
    for places in joined(counts, needed):
        assert sum(counts[place] for place in places) >= needed
        assert sum(counts[place] for place in places[:-1]) < needed
        assert counts[places[0]] > 0


@given(COUNTS, st.sampled_from([1, 20, 100]))
def test_every_sample_is_in_one_slot_but_for_the_last_ones_which_are_too_few(
    counts: list[int], needed: int
) -> None:
    held = [place for places in joined(counts, needed) for place in places]
    assert held == sorted(set(held))
    missing = sum(count for place, count in enumerate(counts) if place not in held)
    assert missing < needed


def test_slots_of_two_turns_are_not_joined() -> None:
    widening = Widening(20)
    assert widening.add(0, 19) is None
    widening.cut()
    assert widening.add(1, 19) is None
    assert widening.add(2, 1) == range(1, 3)
