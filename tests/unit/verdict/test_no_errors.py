"""The limit that nobody wrote: no errors of all that no other limit on errors names."""

from pathlib import Path

import pytest

from replayer.measure.record import load_run
from replayer.measure.run import StatedThreshold
from replayer.measure.summarise import summarise
from replayer.verdict.judgement import judge
from tests.unit.runs import RunWriter, make_run, make_target
from tests.unit.verdict.judged import broken, pages


def test_the_default_yields_to_a_threshold_on_errors_of_one_target(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 20)
    writer.transaction("page", [1000] * 20, "1/0")
    stated = (
        StatedThreshold(text="nfs:errors < 1%", source="--threshold"),
        StatedThreshold(text="errors == 0", source="default"),
    )
    run = make_run(thresholds=stated, targets=(make_target(), make_target(1, "nfs")))
    record = load_run(writer.write(run))
    found = judge(record, summarise(record)).judgements
    assert [(each.threshold, each.target) for each in found] == [
        ("nfs:errors < 1%", "nfs"),
        ("errors == 0", "local"),
    ]


def with_no_errors(folder: Path, *thresholds: str) -> list[tuple[str, str, str]]:
    """Judge 20 looks and 10 saves of which 4 and all failed, and calls outside, by limits."""
    writer = RunWriter(folder)
    tag = "0/0/measured"
    writer.transaction("look", [1000] * 16)
    writer.record(f"{tag}/look/transaction/failed/unexpected", [1000] * 4)
    writer.record(f"{tag}/look/open/ok/expected", [1000] * 16)
    writer.record(f"{tag}/look/open/ENOENT/unexpected", [1000] * 4)
    writer.record(f"{tag}/look/read/ok/expected", [1000] * 16)
    writer.record(f"{tag}/save/transaction/failed/unexpected", [1000] * 10)
    writer.record(f"{tag}/save/open/ok/expected", [1000] * 10)
    writer.record(f"{tag}/save/write/EACCES/unexpected", [1000] * 10)
    writer.record(f"{tag}/-/stat/EACCES/unexpected", [1000] * 3)
    stated = [StatedThreshold(text=text, source="--threshold") for text in thresholds]
    stated.append(StatedThreshold(text="errors == 0", source="default"))
    record = load_run(writer.write(make_run(thresholds=tuple(stated))))
    found = judge(record, summarise(record)).judgements
    return [(each.threshold, each.outcome, each.says) for each in found if "==" in each.threshold]


@pytest.mark.parametrize(
    ("thresholds", "outcome", "says"),
    [
        ([], "fail", "17"),
        (["look.errors < 30%"], "fail", "13, of all but look"),
        (["save.errors <= 100%"], "fail", "7, of all but save"),
        (["save/write.errors <= 100%"], "fail", "7, of all but save/write"),
        (["open.errors < 50%"], "fail", "13, of all but open"),
        (
            ["look/open.errors < 50%", "local:save.errors <= 100%", "stat.errors <= 100%"],
            "pass",
            "0, of all but look/open and save and stat",
        ),
        (["look/read.errors < 1%"], "fail", "17, of all but look/read"),
    ],
)
def test_no_errors_is_asked_of_all_that_no_other_limit_on_errors_names(
    tmp_path: Path, thresholds: list[str], outcome: str, says: str
) -> None:
    assert with_no_errors(tmp_path, *thresholds) == [("errors == 0", outcome, says)]


def test_transactions_that_no_named_call_can_have_failed_count(tmp_path: Path) -> None:
    # As of a task that raises within a transaction, and takes it outside.
    writer = RunWriter(tmp_path)
    tag = "0/0/measured/save"
    writer.transaction("save", [1000] * 60)
    writer.record(f"{tag}/transaction/failed/unexpected", [1000] * 40)
    writer.record(f"{tag}/open/ok/expected", [1000] * 98)
    writer.record(f"{tag}/open/ENOENT/unexpected", [1000] * 2)
    stated = (
        StatedThreshold(text="save/open.errors < 5%", source="--threshold"),
        StatedThreshold(text="errors == 0", source="default"),
    )
    record = load_run(writer.write(make_run(thresholds=stated)))
    named, rest = judge(record, summarise(record)).judgements
    assert (named.outcome, rest.outcome) == ("pass", "fail")
    assert rest.says == "38, of all but save/open"


def test_where_all_is_named_nothing_is_asked_of_the_rest(tmp_path: Path) -> None:
    limits = ("look.errors < 30%", "save.errors <= 100%", "stat.errors <= 100%")
    assert with_no_errors(tmp_path, *limits) == []
    assert with_no_errors(tmp_path, "local:errors < 80%") == []


def test_what_broke_in_what_nobody_named_is_the_environments(tmp_path: Path) -> None:
    writer = broken(tmp_path, "ENOSPC", "save")
    stated = (
        StatedThreshold(text="page.errors < 1%", source="--threshold"),
        StatedThreshold(text="errors == 0", source="as recorded"),
    )
    record = load_run(writer.write(make_run(thresholds=stated)))
    verdict = judge(record, summarise(record))
    assert (verdict.outcome, verdict.exit_code) == ("fail", 3)
    named = (stated[0].model_copy(update={"text": "save.errors <= 100%"}), stated[1])
    record = load_run(writer.write(make_run(thresholds=named)))
    verdict = judge(record, summarise(record))
    assert (verdict.outcome, verdict.exit_code) == ("pass", 0)
