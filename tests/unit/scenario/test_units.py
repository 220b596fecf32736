"""Sizes, times and rates are read exactly."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from replayer.scenario.units import read_duration, read_rate, read_size, wrong_run_time


@pytest.mark.parametrize(
    ("text", "size"),
    [("300B", 300), ("4KiB", 4096), ("1MB", 10**6), ("1.5kB", 1500), ("2 GiB", 2**31), (0, 0)],
)
def test_sizes(text: object, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("5us", 5000), ("250ms", 250_000_000), ("10s", 10**10), ("2m", 120 * 10**9), ("0.1ns", 0)],
)
def test_times(text: str, nanoseconds: int) -> None:
    assert read_duration(text) == nanoseconds


@pytest.mark.parametrize(("text", "rate"), [("50/s", 50), ("90/min", 1.5), ("36/h", 0.01)])
def test_rates(text: str, rate: float) -> None:
    assert read_rate(text) == pytest.approx(rate)


@given(st.integers(0, 10**9), st.sampled_from(["KiB", "MiB"]))
def test_sizes_have_no_rounding_error(number: int, unit: str) -> None:
    assert read_size(f"{number}{unit}") == number * {"KiB": 1024, "MiB": 1024**2}[unit]


@pytest.mark.parametrize("text", ["", "4", "KiB", "4 K", "-4KiB", "4kb", "1e3B", True, None, [1]])
def test_other_sizes_are_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError):
        read_size(text)


@pytest.mark.parametrize("text", ["8761h", "99999999h", f"{'9' * 400}s"])
def test_a_time_of_more_than_a_year_is_refused(text: str) -> None:
    assert read_duration("8760h") == 365 * 86_400 * 10**9
    with pytest.raises(PydanticCustomError, match=r"must be at most a year \(8760h\), got '"):
        read_duration(text)


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0, "must be at least 1s"),
        (1, None),
        (31_536_000, None),
        (31_536_001, "must be at most a year (8760h)"),
        (99_999_999 * 3600, "must be at most a year (8760h)"),
    ],
)
def test_a_run_lasts_from_a_second_to_a_year(seconds: int, says: str | None) -> None:
    assert wrong_run_time(seconds) == says


@given(st.text(max_size=12))
def test_any_text_is_a_time_or_is_refused(text: str) -> None:
    with contextlib.suppress(PydanticCustomError):
        assert read_duration(text) >= 0
