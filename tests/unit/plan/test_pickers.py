"""Pickers cover their candidates, with the shares asked for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.plan.pickers import Pickers, zipf_segments
from replayer.scenario.places import Hot, Zipf


def covers(segments: list[list[int]], candidates: int) -> bool:
    ranks = [rank for _, start, count in segments for rank in range(start, start + count)]
    return ranks == list(range(candidates))


@given(st.integers(1, 5000), st.floats(0.1, 3))
def test_zipf_covers_every_candidate_once(candidates: int, exponent: float) -> None:
    segments = zipf_segments(exponent, candidates)
    assert covers(segments, candidates)
    assert all(weight > 0 for weight, _, _ in segments)
    assert len(segments) < 60


def test_zipf_gives_the_first_ranks_their_share() -> None:
    segments = zipf_segments(1.0, 1000)
    whole = sum(weight for weight, _, _ in segments)
    harmonic = math.fsum(1 / rank for rank in range(1, 1001))
    for rank in (1, 2, 3, 4):
        weight, start, count = segments[rank - 1]
        assert (start, count) == (rank - 1, 1)
        assert weight / whole == pytest.approx(1 / rank / harmonic, rel=1e-6)


@given(st.integers(2, 5000), st.integers(1, 99), st.integers(1, 99))
def test_a_hot_set_has_its_part_and_its_share(candidates: int, share: int, part: int) -> None:
    pickers = Pickers(seed=1)
    hot = Hot.model_validate({"hot": f"{share}/{part}"})
    row = pickers.rows[pickers.add(0, "f", hot, candidates)]
    assert covers(row["segments"], candidates)
    assert row["shuffle"] is not None
    if len(row["segments"]) == 2:
        assert row["segments"][0] == [share, 0, max(1, round(candidates * part / 100))]


def test_equal_pickers_are_kept_once_and_the_seed_moves_the_hot_set() -> None:
    zipf = Zipf.model_validate({"zipf": 1.0})
    one, other = Pickers(seed=1), Pickers(seed=2)
    assert one.add(0, "f", zipf, 10) == one.add(0, "f", zipf, 10) == other.add(0, "f", zipf, 10)
    assert one.rows[0]["shuffle"] != other.rows[0]["shuffle"]
    assert one.add(0, "f", "own", 10) == 1
    assert one.rows[1] == {"dataset": 0, "types": "f", "kind": "own"}
