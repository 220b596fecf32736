"""How times and shares are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.measure.units import (
    format_duration,
    format_factor,
    format_number,
    format_seconds,
    format_share,
    format_time_ns,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"), (317, "317 ns"), (999.6, "1.00 µs"), (1234, "1.23 µs"), (999_999, "1.00 ms"),
        (12_345_678, "12.3 ms"), (94_000_000_000, "94.0 s"), (86_400_000_000_000, "86,400 s"),
        (61.5, "61.5 ns"),
    ],
)  # fmt: skip
def test_times_have_three_digits_and_the_unit_that_fits(value: float, text: str) -> None:
    assert format_time_ns(value) == text


@given(st.floats(1, 1e14))
def test_a_printed_time_is_within_half_a_percent(value: float) -> None:
    number, unit = format_time_ns(value).replace(",", "").split(" ")
    factor = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * factor == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.25, "0.25"), (1, "1"), (1.5, "1.5"), (99.96, "100"), (3903.2, "3,903"),
     (1e6, "1,000,000")],
)  # fmt: skip
def test_numbers_have_three_digits_or_are_whole_and_are_no_powers_of_ten(
    value: float, text: str
) -> None:
    assert format_number(value) == text
    assert format_seconds(value) == f"{text} s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.125, "0.125"), (0.9996, "1.00"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"),
     (1000, "1,000"), (3261.4, "3,261")],
)  # fmt: skip
def test_durations_and_factors_have_three_digits_however_they_are_rounded(
    value: float, text: str
) -> None:
    assert format_duration(value) == f"{text} s"
    assert format_factor(value) == f"{text} times"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (0.0025, "0.25 %"), (0.1234, "12.3 %"), (1.0, "100 %"), (58.46, "5,850 %")],
)
def test_shares_have_three_digits_and_no_powers_of_ten(value: float, text: str) -> None:
    assert format_share(value) == text
