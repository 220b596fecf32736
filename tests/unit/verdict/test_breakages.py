"""Errors by which a target says that it broke, and those of the program."""

from pathlib import Path

import pytest

from tests.unit.runs import RunWriter
from tests.unit.verdict.judged import broken, judged, pages


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ("ENOSPC", "local broke during the run: there was no space or no inode left (3 calls"),
        ("EDQUOT", "the quota was used up (3 calls ended with EDQUOT)"),
        ("EROFS", "it was read-only"),
        ("ESTALE", "what was open was gone from the server"),
        ("ENOTCONN", "the mount was gone"),
        ("EIO", "the mount could not read or write"),
    ],
)
def test_errors_of_a_target_that_broke_are_the_environments(
    tmp_path: Path, outcome: str, says: str
) -> None:
    verdict = judged(broken(tmp_path, outcome), "errors == 0")
    assert (verdict.outcome, verdict.exit_code) == ("fail", 3)
    assert says in verdict.reasons[0]


@pytest.mark.parametrize(
    ("thresholds", "code"),
    [
        (["errors < 10%"], 3),
        (["write.errors == 0"], 3),
        (["page.errors == 0", "page.p95 < 1s"], 3),
        (["page/write.errors == 0"], 3),
        (["errors < 20%"], 0),
        (["page/open.errors == 0"], 0),
        (["errors < 20%", "page.p95 < 1ns"], 1),
    ],
)
def test_a_target_that_broke_counts_where_it_misses_a_limit(
    tmp_path: Path, thresholds: list[str], code: int
) -> None:
    verdict = judged(broken(tmp_path, "ENOSPC"), *thresholds)
    assert (verdict.exit_code, bool(verdict.reasons)) == (code, code == 3)


@pytest.mark.parametrize(
    ("threshold", "outcome", "says", "code"),
    [
        ("errors < 1%", "inconclusive", "nothing was measured", 3),
        ("errors <= 100%", "inconclusive", "nothing was measured", 4),
        ("page.errors < 1%", "inconclusive", "nothing was measured", 3),
        ("errors == 0", "fail", "3", 3),
        ("errors < 5", "pass", "3", 4),
    ],
)
def test_a_target_may_break_before_any_transaction_has_ended(
    tmp_path: Path, threshold: str, outcome: str, says: str, code: int
) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [1000])
    writer.record("0/0/measured/page/open/ok/expected", [1000] * 20)
    writer.record("0/0/measured/page/write/ENOSPC/unexpected", [1000] * 3)
    verdict = judged(writer, threshold)
    (found,) = verdict.judgements
    assert (found.outcome, found.says, verdict.exit_code) == (outcome, says, code)


@pytest.mark.parametrize("failed", [7, 29, 57, 113])
@pytest.mark.parametrize("comparison", ["<=", "=="])
def test_a_share_is_the_one_that_was_written(tmp_path: Path, failed: int, comparison: str) -> None:
    writer = pages(tmp_path, [1000] * (1000 - failed))
    writer.record("0/0/measured/page/transaction/failed/unexpected", [1000] * failed)
    written = f"{failed // 10}.{failed % 10}"
    assert judged(writer, f"errors {comparison} {written}%").outcome == "pass"
    assert judged(writer, f"errors < {written}%").outcome == "fail"


def test_calls_that_broke_in_one_transaction_are_one_try_of_a_share(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 19)
    writer.record("0/0/measured/page/transaction/failed/unexpected", [1000])
    writer.record("0/0/measured/page/write/EIO/unexpected", [1000] * 9)
    verdict = judged(writer, "errors < 10%")
    assert (verdict.outcome, verdict.exit_code, verdict.reasons) == ("pass", 0, ())


def test_errors_of_a_program_are_no_breakage(tmp_path: Path) -> None:
    verdict = judged(broken(tmp_path, "EEXIST"), "errors == 0")
    assert (verdict.exit_code, verdict.reasons) == (1, ())


def test_an_expected_lack_of_space_is_no_error(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 20)
    writer.record("0/0/measured/page/write/ENOSPC/expected", [1000] * 3)
    assert judged(writer, "errors == 0").exit_code == 0
