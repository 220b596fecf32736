"""What keeps a run from proving anything good."""

from pathlib import Path

import pytest

from tests.unit.verdict.judged import judged, pages


@pytest.mark.parametrize(("cut", "reasons"), [(1, 0), (2, 1)])
def test_calls_that_never_ended_prove_nothing(tmp_path: Path, cut: int, reasons: int) -> None:
    writer = pages(tmp_path, [1000] * 100)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [10**10] * cut)
    writer.record("0/0/measured/page/flock/cancelled/expected", [10**10] * cut)
    verdict = judged(writer)
    assert (verdict.outcome, len(verdict.reasons)) == (["pass", "inconclusive"][reasons], reasons)
    said = "2 calls on local were broken off at the end of a turn: how long they would have taken "
    assert all(reason == said + "is in no figure" for reason in verdict.reasons)


def test_transactions_that_wait_for_no_call_may_be_broken_off(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 10)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [10**10] * 4)
    assert judged(writer).outcome == "pass"
