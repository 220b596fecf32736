"""Student's t against what handbooks print."""

import pytest

from replayer.analysis.resampling import student_quantile


@pytest.mark.parametrize(
    ("chance", "printed"),
    [
        (0.05, (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)),
        (0.01, (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)),
        (0.001, (636.62, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587)),
    ],
)
def test_quantiles_are_those_of_the_tables(chance: float, printed: tuple[float, ...]) -> None:
    """NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2; two-sided here."""
    found = [student_quantile(chance, freedom) for freedom in range(1, len(printed) + 1)]
    assert found == pytest.approx(printed, rel=2e-4)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    assert student_quantile(0.05, 100_000) == pytest.approx(1.95996, abs=1e-4)
