"""What ended a run is told beside how long it was measured."""

from pathlib import Path
from typing import Any

import pytest

from replayer.measure.record import load_run
from replayer.report.composition import compose
from replayer.report.description import describe_run
from tests.unit.runs import RunWriter, make_health, make_load, make_run

EARLY = ", then the users had made their transactions"


def time_of(folder: Path, load: dict[str, Any], **facts: object) -> str:
    """Return what is said of the time of a run that was measured for 5 s."""
    writer = RunWriter(folder)
    for second in range(5):
        writer.transaction("look", [1_000_000] * 9, span=(second, second + 1))
    written = writer.write(make_run(load=make_load(**load), **facts))
    return dict(describe_run(compose(load_run(written))))["time"]


def test_a_run_that_its_transactions_ended_says_so(tmp_path: Path) -> None:
    said = time_of(tmp_path, {"duration_s": 600.0, "transactions_per_user": 25})
    assert said == (
        f"600 s per target or 25 transactions per user, 1 round; measured: local 5 s{EARLY}"
    )


@pytest.mark.parametrize(
    ("load", "facts"),
    [
        ({"duration_s": 5.0, "transactions_per_user": 25}, {}),
        ({"duration_s": 600.0}, {}),
        ({"duration_s": None, "transactions_per_user": 25}, {}),
        ({"duration_s": 600.0, "transactions_per_user": 25}, {"status": "interrupted"}),
        (
            {"duration_s": 600.0, "transactions_per_user": 25},
            {"health": make_health(users_given_up=1)},
        ),
    ],
)
def test_a_run_that_anything_else_ended_does_not(
    tmp_path: Path, load: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert EARLY not in time_of(tmp_path, load, **facts)
