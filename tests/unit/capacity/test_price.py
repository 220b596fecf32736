"""What targets cost at their capacities, worked out by hand beside."""

import pytest

from replayer.capacity.price import Priced, changes_of

MONTH_S = 730 * 3600


def test_a_month_has_what_is_paid_anyway_and_what_is_used() -> None:
    found = Priced("efs", 10.0, 100.0, 2.0)
    views = 10 * MONTH_S
    assert found.per_month == pytest.approx(100 + views * 2 / 1e6)
    assert found.per_million == pytest.approx(found.per_month / views * 1e6)


def test_the_dearer_one_to_have_is_cheaper_from_where_the_lines_cross() -> None:
    by_use, by_size = Priced("efs", 100.0, 0.0, 4.0), Priced("zfs", 100.0, 200.0, 0.0)
    ((load, few, many),) = changes_of([by_use, by_size])
    assert (few, many) == (by_use, by_size)
    assert load * MONTH_S * 4 / 1e6 == pytest.approx(200)


def test_a_load_that_one_of_them_does_not_carry_changes_nothing() -> None:
    by_use, by_size = Priced("efs", 1.0, 0.0, 4.0), Priced("zfs", 100.0, 200.0, 0.0)
    assert list(changes_of([by_use, by_size])) == []
    assert list(changes_of([by_use, Priced("other", 100.0, 0.0, 5.0)])) == []
