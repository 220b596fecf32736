"""Distributions become tables of equally probable integers that have the moments asked for."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.plan.scope import RESOLUTION, Tables, exponential_table, tabulate
from replayer.scenario.draws import DurationDraw, SizeDraw


def table(value: object) -> list[int]:
    found = tabulate(SizeDraw.model_validate(value))
    assert found is not None
    return found


@given(st.integers(100, 10**6), st.floats(1, 50))
def test_a_lognormal_has_its_median_and_p95(median: int, ratio: float) -> None:
    p95 = round(median * ratio)
    row = table({"lognormal": {"median": f"{median}B", "p95": f"{p95}B"}})
    assert row == sorted(row)
    assert statistics.median(row) == pytest.approx(median, rel=0.01)
    assert row[RESOLUTION * 95 // 100] == pytest.approx(p95, rel=0.01)


@given(st.integers(1, 10**12))
def test_an_exponential_has_exactly_its_mean(mean: int) -> None:
    row = exponential_table(mean)
    assert len(row) == RESOLUTION
    assert sum(row) == mean * RESOLUTION
    assert min(row) >= 0


def test_an_exponential_has_its_quantiles() -> None:
    row = table({"exponential": "1MB"})
    assert statistics.median(row) == pytest.approx(693_147, rel=0.002)
    assert row[RESOLUTION * 99 // 100] == pytest.approx(4_605_170, rel=0.01)


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=20).map(sorted))
def test_quantiles_stay_between_their_ends_in_order(points: list[int]) -> None:
    row = table({"quantiles": [f"{point}B" for point in points]})
    assert row == sorted(row)
    assert points[0] <= row[0]
    assert row[-1] <= points[-1]


def test_values_stand_as_they_are() -> None:
    assert table({"values": ["4KiB", "1B", "4KiB"]}) == [4096, 1, 4096]


def test_constants_and_uniform_draws_need_no_table() -> None:
    assert tabulate(SizeDraw.model_validate("4KiB")) is None
    assert tabulate(DurationDraw.model_validate({"uniform": ["1s", "2s"]})) is None


def test_the_same_table_is_kept_once() -> None:
    tables = Tables()
    assert [tables.add([1, 2]), tables.add([3]), tables.add([1, 2])] == [0, 1, 0]
    assert tables.rows == [[1, 2], [3]]
