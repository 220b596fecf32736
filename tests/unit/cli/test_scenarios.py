"""The list of scenarios says what ends each of them."""

import pytest

from replayer.cli.scenarios import show_end
from replayer.scenario.loading import parse_scenario
from tests.unit.scenario.texts import changed


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("duration: 2m", "120 s"),
        ("iterations: 25", "25 each"),
        ("duration: 2m\niterations: 25", "25 each, max 120 s"),
    ],
)
def test_a_scenario_ends_by_time_by_transactions_or_by_what_comes_first(
    end: str, said: str
) -> None:
    assert show_end(parse_scenario(changed("duration: 2s", end), "s.yaml")) == said
