"""What reports say of replays: agreement, divergences with what led to them, lateness, order."""

import html
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from replayer.measure.record import load_run
from replayer.measure.replay import Counted, OrderFacts, ReplayFacts, counted
from replayer.measure.run import StatedThreshold
from replayer.report.composition import compose
from replayer.report.document import Document
from replayer.report.html import render_html
from replayer.report.json_form import render_json, run_schema
from replayer.report.junit import render_junit
from replayer.report.markdown import render_markdown
from replayer.report.table import render_table
from tests.unit.runs import RunWriter, make_run, make_target

GOLDEN = Path(__file__).parents[2] / "golden"
SECOND = 1_000_000_000
TRACE = {
    "name": "mine/site",
    "sha256": "0123456789abcdef" * 4,
    "events": 1000,
    "threads": 2,
    "span_ns": 2 * SECOND,
    "blind_spots": [{"name": "mmap", "count": 3}],
}
PAST = {
    "row": 790,
    "thread": 1,
    "op": "unlink",
    "path": "site/cache/\x1bpage.tmp",
    "to_path": None,
    "result": "0",
    "why": "path",
}
EXAMPLE = {
    "target": 1,
    "user": 3,
    "performance": 0,
    "trace": "mine/site",
    "row": 812,
    "thread": 0,
    "op": "open",
    "path": "site/cache/\x1bpage.tmp",
    "recorded": "ENOENT",
    "got": "ok",
    "result_recorded": None,
    "result_got": None,
    "hint": "several users share this name",
    "history": [PAST, {**PAST, "row": 12, "op": "rename", "to_path": "site/b", "why": "parent"}],
}
RESULTS = {
    "performances": 2,
    "events": 2000,
    "compared": 1990,
    "matched": 1946,
    "omitted": [{"name": "special file", "count": 2}],
    "allowed": [{"name": "listing-batches", "count": 40}],
    "diverged": [
        {"target": 1, "transaction": "site", "op": "open", "recorded": "ENOENT", "got": "ok",
         "count": 1},
        {"target": 1, "transaction": "site", "op": "read", "recorded": "ok", "got": "less",
         "count": 3},
    ],
    "examples": [EXAMPLE, {**EXAMPLE, "row": 900, "history": None}],
    "targets": [
        {"index": 0, "performances": 1, "events": 1000, "compared": 995, "matched": 975,
         "drift_ns": 0},
        {"index": 1, "performances": 1, "events": 1000, "compared": 995, "matched": 971,
         "drift_ns": 5_000_000},
    ],
}  # fmt: skip
ORDER = {"performances": 2, "events": 2000, "edges": 84, "violated": 1, "first": "row 7 before 5"}


def replay(**changes: Any) -> ReplayFacts:  # noqa: ANN401 - fields of a model
    """Return a timed replay on two targets that went wrong on the second."""
    transactions = [
        {"name": "site", "trace": "mine/site", "request": None, "pace": "timed", "speed": 2.0}
    ]
    facts = {"traces": [TRACE], "transactions": transactions, "lanes": 1, "results": RESULTS}
    return ReplayFacts.model_validate({**facts, **changes})


def document(folder: Path, found: ReplayFacts | None, late_ns: int = 1000) -> Document:
    """Return the document of a run in which every event was late by so much."""
    writer = RunWriter(folder / "run")
    for target in (0, 1):
        place = f"{target}/0"
        writer.transaction("site", [SECOND + 5_000_000], place)
        writer.record(f"{place}/measured/site/event.lag/ok/expected", [late_ns] * 1000)
        writer.record(f"{place}/measured/site/read/ok/expected", [2000] * 996, moved=4096)
    writer.record("1/0/measured/site/read/DIVERGED/unexpected", [2000] * 3)
    writer.record("1/0/measured/site/open/ok/unexpected", [2000])
    run = make_run(
        targets=(make_target(), make_target(1, "other")),
        thresholds=(StatedThreshold(text="errors == 0", source="as recorded"),),
        replay=found,
    )
    made = compose(load_run(writer.write(run)))
    return made.model_copy(update={"folder": "replayer-runs/20261121T024839-ab12"})


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("replay.txt", render_table),
        ("replay.md", render_markdown),
        ("replay.xml", render_junit),
    ],
)
def test_each_form_of_a_replay_is_as_it_was_approved(
    tmp_path: Path, name: str, render: Callable[[Document], str]
) -> None:
    text = render(document(tmp_path, replay(order=ORDER)))
    if os.environ.get("REPLAYER_BLESS") == "1":
        (GOLDEN / name).write_text(text)
    assert (GOLDEN / name).read_text() == text


def test_the_json_of_a_replay_keeps_to_its_schema_and_reads_back(tmp_path: Path) -> None:
    found = document(tmp_path, replay(order=ORDER))
    text = render_json(found)
    jsonschema.Draft202012Validator(run_schema()).validate(json.loads(text))
    assert Document.model_validate_json(text) == found


def test_divergences_are_errors_and_fail_the_threshold(tmp_path: Path) -> None:
    found = document(tmp_path, replay())
    assert [each.outcome for each in found.verdict.judgements] == ["pass", "fail"]
    assert found.verdict.exit_code == 1
    assert found.summary.targets[1].overall.errors == 4


def test_order_that_was_not_kept_fails_the_run_and_order_that_was_does_not(tmp_path: Path) -> None:
    clean = replay(results={**RESULTS, "diverged": [], "examples": []})
    for violated, outcome in ((0, "pass"), (1, "fail")):
        kept = clean.model_copy(
            update={"order": OrderFacts.model_validate({**ORDER, "violated": violated})}
        )
        (*_, judged) = document(tmp_path / str(violated), kept).verdict.judgements
        assert (judged.threshold, judged.outcome) == ("order kept", outcome)
        assert judged.says == f"84 edges checked, {violated} violated"


def test_a_schedule_that_was_not_kept_is_warned_of(tmp_path: Path) -> None:
    late = document(tmp_path / "late", replay(), late_ns=20_000_000)
    kinds = [warning.kind for warning in late.warnings]
    assert kinds == ["schedule missed"] * 2
    assert "lower --speed" in late.warnings[0].hint
    assert not document(tmp_path / "kept", replay(), late_ns=1_000_000).warnings


def unrehearsed(folder: Path, pauses_ns: int, recorder_ns: int | None) -> Document:
    """Return the document of a run whose calls took 2 ms, with such pauses in its trace."""
    facts = {"pauses_ns": pauses_ns, "recorder_ns": recorder_ns}
    site = {"name": "site", "trace": "mine/site", "request": None, "pace": "closed", "speed": 1.0}
    return document(folder, replay(transactions=[{**site, **facts}]))


def test_every_form_says_at_the_top_what_of_a_replay_the_recorder_may_have_made(
    tmp_path: Path,
) -> None:
    found = unrehearsed(tmp_path, pauses_ns=3_000_000, recorder_ns=1_500_000)
    says = (
        "up to 30 % (local), 30 % (other) of this replay's time are pauses that the recorder "
        "may have made"
    )
    (warning,) = found.warnings
    assert warning.message == says
    assert all(word in warning.hint for word in ("--rehearse", "replayer fit", "--pace asap"))
    text = render_table(found)
    assert text.index("up to 30 %") < text.index("What was measured")
    assert text.index("--pace asap") < text.index("What was measured")
    page = render_html([load_run(tmp_path / "run")])
    for form in (html.unescape(page), render_markdown(found).replace("\\", "")):
        assert form.index(says) < form.index("--pace asap") < form.index("mine/site")
    suite = ET.fromstring(render_junit(found))[0]  # noqa: S314 - ours
    properties = [each.attrib for each in suite.findall("properties/property")]
    assert properties == [{"name": "recorded pauses", "value": says}]
    assert says in json.dumps(json.loads(render_json(found)))


@pytest.mark.parametrize(
    ("pauses_ns", "recorder_ns"),
    [(3_000_000, None), (3_000_000, 0), (1_000_000_000, 9_000_000)],
    ids=["it is known", "none", "next to none"],
)
def test_pauses_that_are_the_programs_are_not_warned_of(
    tmp_path: Path, pauses_ns: int, recorder_ns: int | None
) -> None:
    assert not unrehearsed(tmp_path, pauses_ns, recorder_ns).warnings


def test_lateness_and_drift_are_those_of_the_recorded_clock_at_its_speed(tmp_path: Path) -> None:
    text = render_table(document(tmp_path, replay()))
    late = "p50 1.00 µs, p99 1.00 µs, max 1.00 µs; drift at the end"
    assert f"{late} 0 ns on local" in text
    assert f"{late} 5.00 ms on other" in text


def test_blind_spots_are_named_even_when_there_are_none(tmp_path: Path) -> None:
    assert "mmap 3" in render_table(document(tmp_path / "some", replay()))
    none = replay(traces=[{**TRACE, "blind_spots": []}])
    assert "none seen in the recording" in render_table(document(tmp_path / "none", none))


def test_a_replay_that_has_not_ended_says_what_was_replayed_and_no_agreement(
    tmp_path: Path,
) -> None:
    text = render_table(document(tmp_path, replay(results=None)))
    assert "mine/site: 1,000 events of 2 threads" in text
    assert "how far it agreed" not in text


def test_junit_has_a_failed_case_where_events_diverged_only(tmp_path: Path) -> None:
    suite = ET.fromstring(render_junit(document(tmp_path, replay())))[0]  # noqa: S314 - ours
    cases = {case.attrib["name"]: case for case in suite.findall("testcase")}
    assert cases["local: events come out as recorded"].find("failure") is None
    failure = cases["other: events come out as recorded"].find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "4 events diverged"
    assert "row 812 of mine/site" in str(failure.text)
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))


def test_counts_come_most_frequent_first() -> None:
    assert counted({"b": 1, "a": 1, "c": 5}) == (
        Counted(name="c", count=5),
        Counted(name="a", count=1),
        Counted(name="b", count=1),
    )
