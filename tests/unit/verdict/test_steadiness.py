"""Cliffs and drifts of which all is known, held against limits."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from replayer.measure.run import Outcome
from replayer.verdict.judgement import Judgement
from tests.unit.analysis.found import noisy
from tests.unit.runs import RunWriter, make_health, make_target
from tests.unit.verdict.judged import judged

CLIFF = [1e6] * 30 + [4e6] * 30
BURST = [1e6] * 20 + [4e6] * 20 + [1e6] * 20


def rising(to: float, seconds: int = 60) -> list[float]:
    return [float(level) for level in np.geomspace(1e6, to * 1e6, seconds)]


def run_of(folder: Path, **levels: Sequence[float]) -> RunWriter:
    """Transactions whose mean is a level in each second."""
    writer = RunWriter(folder)
    for place, (name, own) in enumerate(levels.items()):
        for second, level in enumerate(own):
            span = (second, second + 1)
            writer.transaction(name, noisy(1_000 * place + second, level, 40), "0/0", span)
            writer.record(f"0/0/measured/{name}/read/ok/expected", [1000], span, 2_000_000)
    return writer


def judge_one(writer: RunWriter, threshold: str, **changes: object) -> Judgement:
    (found,) = judged(writer, threshold, **changes).judgements
    return found


@pytest.mark.parametrize(
    ("levels", "threshold", "outcome", "measured", "says"),
    [
        ([1e6] * 60, "cliff == 0", "pass", 0, "0"),
        (CLIFF, "cliff == 0", "fail", 1, "1; page 4.0"),
        (CLIFF, "page.cliff == 0", "fail", 1, "1; page 4.0"),
        (CLIFF, "cliff <= 1", "pass", 1, "1; page 4.0"),
        (BURST, "cliff == 0", "fail", 1, "1; page 4.0"),
        (CLIFF[::-1], "cliff == 0", "pass", 0, "0"),
        ([1e6] * 30 + [1.7e6] * 30, "cliff == 0", "pass", 0, "0"),
        ([1e6] * 16, "cliff == 0", "inconclusive", None, "page has 16 of at least 17"),
        ([1e6] * 60, "gone.cliff == 0", "inconclusive", None, "no gone was measured on local"),
        ([1e6] * 60, "drift < 10%", "pass", 0, "page "),
        (rising(1.5), "drift < 10%", "fail", 0.5, "page +"),
        (rising(1.5), "page.drift < 100%", "pass", 0.5, "page +"),
        (rising(1 / 1.5), "drift < 10%", "pass", -1 / 3, "page \N{MINUS SIGN}"),
        (rising(1.1), "drift < 10%", "inconclusive", 0.1, "page +"),
        (CLIFF, "drift < 10%", "inconclusive", None, "page has a step"),
        ([1e6] * 29, "drift < 10%", "inconclusive", None, "page has 29 of at least 30"),
    ],
)
def test_what_was_written_into_a_run_is_judged(  # noqa: PLR0913, PLR0917 - a table
    tmp_path: Path,
    levels: Sequence[float],
    threshold: str,
    outcome: Outcome,
    measured: float | None,
    says: str,
) -> None:
    found = judge_one(run_of(tmp_path, page=levels), threshold)
    assert found.outcome == outcome
    assert says in found.says
    assert found.measured == (None if measured is None else pytest.approx(measured, abs=0.06))


def test_where_a_cliff_stood_is_said(tmp_path: Path) -> None:
    found = judge_one(run_of(tmp_path, page=CLIFF), "cliff == 0")
    assert found.says == "1; page 4.01 times slower after 30.0 s and 60.0 MB"


def test_transactions_that_became_slow_together_are_one_cliff(tmp_path: Path) -> None:
    writer = run_of(tmp_path, page=CLIFF, login=CLIFF, save=[1e6] * 60)
    assert judge_one(writer, "cliff == 0").measured == 1
    assert judge_one(writer, "login.cliff == 0").measured == 1
    assert judge_one(writer, "save.cliff == 0").outcome == "pass"


def test_the_worst_transaction_decides_of_all(tmp_path: Path) -> None:
    writer = run_of(tmp_path, page=[1e6] * 60, login=rising(2))
    assert judge_one(writer, "drift < 10%").says.startswith("login +")
    assert judge_one(writer, "drift < 10%").outcome == "fail"
    assert judge_one(writer, "page.drift < 10%").outcome == "pass"


@pytest.mark.parametrize(("level", "outcome"), [(1e5, "pass"), (1e6, "inconclusive")])
@pytest.mark.parametrize("threshold", ["cliff == 0", "drift < 10%"])
def test_a_rare_transaction_keeps_all_from_being_judged_if_it_takes_notable_time(
    tmp_path: Path, threshold: str, level: float, outcome: Outcome
) -> None:
    writer = run_of(tmp_path, page=[1e6] * 60, login=[level] * 12)
    found = judge_one(writer, threshold)
    assert found.outcome == outcome
    assert "login has 12 of at least" in found.says


def test_a_cliff_of_one_transaction_fails_all_though_another_is_too_rare(tmp_path: Path) -> None:
    writer = run_of(tmp_path, page=CLIFF, login=[1e6] * 12)
    assert judge_one(writer, "cliff == 0").outcome == "fail"


def test_a_cliff_that_came_last_proves_nothing(tmp_path: Path) -> None:
    writer, begin = RunWriter(tmp_path), 0.0
    for time in [*noisy(327, 1e8, 60), 40_000_000_000]:
        begin += time / 1e9
        writer.transaction("page", [time], "0/0", (begin - min(time / 1e9, 1.0), begin))
    found = judge_one(writer, "cliff == 0")
    assert found.outcome == "inconclusive"
    assert "too few samples to tell whether it stays" in found.says


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "interrupted"}, ": missed when the run was interrupted"),
        ({"health": make_health(client_cpu_share=1.0)}, "page "),
    ],
)
@pytest.mark.parametrize(
    ("levels", "threshold"), [(CLIFF, "cliff == 0"), (rising(2), "drift < 10%")]
)
def test_what_may_be_the_clients_or_is_of_a_part_proves_nothing(
    tmp_path: Path,
    levels: Sequence[float],
    threshold: str,
    changes: dict[str, object],
    says: str,
) -> None:
    found = judge_one(run_of(tmp_path, page=levels), threshold, **changes)
    assert found.outcome == "inconclusive"
    assert says in found.says


def test_each_target_is_judged_by_its_own(tmp_path: Path) -> None:
    writer = run_of(tmp_path, page=[1e6] * 60)
    for second, level in enumerate(CLIFF):
        span = (60 + second, 61 + second)
        writer.transaction("page", noisy(second, level, 40), "1/0", span)
    targets = (make_target(), make_target(1, "nfs"))
    both = judged(writer, "cliff == 0", targets=targets).judgements
    assert [(each.target, each.outcome) for each in both] == [("local", "pass"), ("nfs", "fail")]
