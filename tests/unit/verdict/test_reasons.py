"""What keeps a run from proving anything good."""

from pathlib import Path

import pytest

from tests.unit.runs import make_health
from tests.unit.verdict.judged import judged, pages


@pytest.mark.parametrize(("cut", "reasons"), [(1, 0), (2, 1)])
def test_calls_that_never_ended_prove_nothing(tmp_path: Path, cut: int, reasons: int) -> None:
    writer = pages(tmp_path, [1000] * 100)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [10**10] * cut)
    writer.record("0/0/measured/page/flock/cancelled/expected", [10**10] * cut)
    verdict = judged(writer)
    assert (verdict.outcome, len(verdict.reasons)) == (["pass", "inconclusive"][reasons], reasons)
    said = (
        "2 calls on local had not ended when their turn did: the oldest, flock, had lasted 10.0 s; "
    )
    assert all(reason == said + "they count in max alone, as a bound" for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("lasts", "known"),
    [
        ([], "their last calls are in no figure"),
        ([10**9, 4 * 10**9], "the oldest call had lasted 4.00 s, and counts in max alone"),
    ],
)
def test_users_that_hung_are_told_with_the_age_of_the_oldest_call_where_it_is_known(
    tmp_path: Path, lasts: list[int], known: str
) -> None:
    writer = pages(tmp_path, [1000] * 1000)
    if lasts:
        writer.record("0/0/measured/page/stat/cancelled/expected", lasts)
    (reason,) = judged(writer, health=make_health(users_given_up=2)).reasons
    assert reason == f"2 users hung in a call: {known}"


def test_transactions_that_wait_for_no_call_may_be_broken_off(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 10)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [10**10] * 4)
    assert judged(writer).outcome == "pass"
