"""How often chance makes one of equal targets look different, however many there are."""

from pathlib import Path

import numpy as np
import pytest

from replayer.report.comparing import compare
from replayer.report.document import Comparison
from tests.unit.report.contenders import load
from tests.unit.runs import RunWriter, make_load, make_run, make_target

FIGURES = 200
SECONDS = 2  # of a turn


def equal_targets(folder: Path, targets: int, rounds: int = 3, apart: float = 1.0) -> Comparison:
    """Compare targets of which each round is as slow as chance has it, and within it all is alike.

    So rounds differ as much as they can beside what seconds show. Each transaction is a figure of
    its own; the last target takes ``apart`` times as long as the others.
    """
    random, writer = np.random.default_rng(targets), RunWriter(folder)
    means = 1e6 * random.lognormal(sigma=0.1, size=(FIGURES, targets, rounds))
    means[:, -1] *= apart
    for (figure, target, number), mean in np.ndenumerate(means):
        turn = (number * targets + target) * SECONDS
        for second in range(turn, turn + SECONDS):
            place = f"{target}/{number}/measured/f{figure}/transaction/ok/expected"
            writer.record(place, [int(mean)] * 10, (second, second + 1))
    facts = tuple(make_target(index, f"t{index}") for index in range(targets))
    return compare([load(writer.write(make_run(targets=facts, load=make_load(rounds=rounds))))])


def told_apart(found: Comparison) -> int:
    """Count the medians of which any target is called different."""
    return sum(
        any(standing.claim == "differs" for standing in item.standings)
        for item in found.compared
        if (item.kind, item.figure) == ("transaction", "p50")
    )


LONG = [
    pytest.param(5, 3, marks=pytest.mark.nightly),
    pytest.param(5, 6, marks=pytest.mark.nightly),
]
TEN = pytest.param(10, 3, marks=pytest.mark.nightly)
TEN_LONGER = pytest.param(10, 6, marks=pytest.mark.nightly)  # in three rounds 45 of 200 are found


@pytest.mark.parametrize(("targets", "rounds"), [(2, 3), *LONG, TEN])
def test_of_equal_targets_one_looks_different_at_most_1_time_in_20(
    tmp_path: Path, targets: int, rounds: int
) -> None:
    found = equal_targets(tmp_path / "run", targets, rounds)
    assert told_apart(found) <= FIGURES / 20


@pytest.mark.parametrize(("targets", "rounds"), [(2, 3), *LONG, TEN_LONGER])
def test_what_is_many_times_as_slow_is_found_among_many_targets(
    tmp_path: Path, targets: int, rounds: int
) -> None:
    found = equal_targets(tmp_path / "run", targets, rounds, apart=8.0)
    assert told_apart(found) >= FIGURES * 0.9
