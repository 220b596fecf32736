"""Scenarios that replay traces: both forms, where traces are found, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import parse_scenario
from replayer.scenario.model import Scenario
from replayer.trace.shipped import shipped_traces

TEXT = """\
name: pages
duration: 1s
datasets:
  login: {files: 3, sizes: 1KiB}
mix: {page: 3, log_in: 1}
sequences:
  type:
    - think: 1ms
transactions:
  page: {trace: wordpress/front-warm, request: /, speed: 2}
  log_in:
    - stat: {from: login}
    - repeat:
        times: 2
        steps:
          - replay: {trace: wordpress/login, request: login form, pace: asap}
    - use: type
    - replay: wordpress/login
"""


def scenario(old: str = "name", new: str = "name", source: str = "s.yaml") -> Scenario:
    assert old in TEXT
    return parse_scenario(TEXT.replace(old, new, 1), source)


def test_a_transaction_may_be_a_request_and_a_step_may_be_one_among_others() -> None:
    body = compile_plan(scenario()).body
    replay = {"do": "replay", "trace": 0, "request": "/", "pace": "closed", "speed_percent": 200}
    assert body["transactions"][0]["steps"] == [replay]
    _, _, repeat, think, whole = body["transactions"][1]["steps"]
    assert repeat["steps"][0]["request"] == "login form"
    assert repeat["steps"][0]["pace"] == "asap"
    assert think["do"] == "think"
    assert (whole["trace"], whole["request"], whole["speed_percent"]) == (1, None, 100)


def test_a_trace_has_a_directory_of_its_own_beside_the_datasets() -> None:
    plan = compile_plan(scenario())
    assert [row["directory"] for row in plan.body["traces"]] == ["front-warm", "login-2"]
    assert [row["sha256"] for row in plan.body["traces"]] == [each.sha256 for each in plan.traces]


def test_a_scenario_without_traces_has_no_such_key() -> None:
    text = (
        TEXT.split("transactions:", maxsplit=1)[0]
        + "transactions:\n  page:\n    - stat: {in: login}\n"
    )
    plan = compile_plan(parse_scenario(text.replace(", log_in: 1", ""), "s.yaml"))
    assert "traces" not in plan.body
    assert plan.traces == ()


def test_a_relative_name_begins_at_the_scenarios_folder(tmp_path: Path) -> None:
    shutil.copytree(shipped_traces()["wordpress/login"], tmp_path / "mine")
    found = scenario("replay: wordpress/login", "replay: mine", str(tmp_path / "s.yaml"))
    assert found.traces["mine"].folder == tmp_path / "mine"
    assert found.traces["mine"].sha256 == found.traces["wordpress/login"].sha256


def test_the_same_trace_under_two_names_is_in_the_plan_once(tmp_path: Path) -> None:
    shutil.copytree(shipped_traces()["wordpress/login"], tmp_path / "mine")
    text = TEXT.replace("wordpress/login", "mine").replace("replay: mine", "replay: ./mine")
    plan = compile_plan(parse_scenario(text, str(tmp_path / "s.yaml")))
    assert [row["name"] for row in plan.body["traces"]] == ["front-warm", "mine"]


def test_what_is_expected_of_a_request_is_that_of_the_mean_recorded_one() -> None:
    page, log_in = describe_plan(compile_plan(scenario())).transactions
    assert page.ops_total == 1133
    assert page.failing_lookups == 128
    assert log_in.ops["stat"] > 1
    assert log_in.ops_total == 1 + 2 * 379 + 755


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        (
            "request: /,",
            "request: //,",
            "s.yaml:10: transactions.page.request (//) is not a request of the trace",
            "did you mean /?",
        ),
        ("request: /,", "requst: /,", "s.yaml:10: unknown key requst in transactions.page", "requ"),
        (
            "request: login form",
            "request: login frm",
            "s.yaml:16: transactions.log_in[1].repeat.steps[0].replay.request (login frm)",
            "did you mean login form?",
        ),
        (
            "replay: wordpress/login",
            "replay: wordpress/logn",
            "s.yaml:18: wordpress/logn: no such trace",
            "did you mean wordpress/login?",
        ),
        ("speed: 2", "speed: 0", "page.speed must be from 0.01 to 10000, got 0", ""),
        ("speed: 2", "speed: fast", "page.speed must be a number such as 1 or 0.5", ""),
        ("pace: asap", "pace: open", "must be 'asap', 'closed' or 'timed', got 'open'", ""),
        (
            "{trace: wordpress/front-warm, request: /, speed: 2}",
            "{request: /}",
            "s.yaml:10: transactions.page must be a list of steps, or a mapping with trace",
            "",
        ),
        (
            "{trace: wordpress/front-warm, request: /, speed: 2}",
            "[{replay: {request: /}}]",
            "s.yaml:10: transactions.page[0].replay.trace is missing",
            "",
        ),
        (
            "duration: 1s",
            "duration: 1s\nverify: true",
            "s.yaml:3: verify is not allowed with replays, which are checked against their traces",
            "without verify",
        ),
    ],
)
def test_mistakes_are_told_with_file_line_and_the_nearest_word(
    old: str, new: str, says: str, hint: str
) -> None:
    with pytest.raises(ScenarioError) as told:
        scenario(old, new)
    assert says in str(told.value)
    assert hint in told.value.hint


def test_a_damaged_trace_is_told_at_the_line_that_names_it(tmp_path: Path) -> None:
    shutil.copytree(shipped_traces()["wordpress/login"], tmp_path / "mine")
    (tmp_path / "mine" / "tree.parquet").write_bytes(b"changed")
    with pytest.raises(ScenarioError, match=r"s\.yaml:18: .*tree"):
        scenario("replay: wordpress/login", "replay: mine", str(tmp_path / "s.yaml"))


def test_check_prints_the_ops_of_each_request_and_what_is_laid_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pages.yaml"
    path.write_text(TEXT)
    assert main(["check", str(path)]) == 0
    text = capsys.readouterr().out
    assert "1,133 ops, 128 lookups expected to fail" in text
    assert "trace         wordpress/front-warm: 11,330 events of 1 thread, 149 files" in text
    assert main(["check", "--json", str(path)]) == 0
    (front, login) = json.loads(capsys.readouterr().out)["traces"]
    assert (front["events"], login["requests"]) == (11330, {"login POST": 1, "login form": 1})
