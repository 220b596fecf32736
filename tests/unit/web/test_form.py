"""What the form makes of an order: a run of the chosen scenario, and what goes with it."""

import re
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.run.options import Settings
from replayer.run.workload import Workload, make_workload
from replayer.web.choices import offered
from replayer.web.form import RunForm, make_form

OWN = """\
name: own
users: {count: 2, think_time: 2ms}
duration: 1s
datasets:
  papers: {files: 20, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: papers, pick: uniform}
"""
PACES = {
    "own.yaml": OWN,
    "paced.yaml": OWN.replace("think_time: 2ms", "every: 1s"),
    "open.yaml": OWN.replace(", think_time: 2ms", "") + "arrivals: {rate: 5/s}\n",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in PACES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def formed(*changes: str, scenario: str | None = "own.yaml") -> RunForm:
    settings = Settings(scenario=scenario, targets=("mount",), changes=changes)
    return make_form(settings, [*offered(settings, list(PACES))], "mount")


def ordered(form: RunForm, scenario: str, pace: str = "as the scenario says") -> Workload:
    fields = {"scenario": scenario, "pace": pace, "user_count": "2", "spawn_rate": "2"}
    return make_workload(form.read({name: [value] for name, value in fields.items()}), 1)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("scenario", ["own", "paced", "open"])
def test_no_think_time_is_possible_whatever_the_scenarios_pace(scenario: str) -> None:
    workload = ordered(formed(), scenario, "no think time")
    assert workload.plan.body["pace"] == {"kind": "closed", "think": {"const": 0}}
    assert ordered(formed(), scenario).plan.body["pace"] != workload.plan.body["pace"]


@pytest.mark.usefixtures("home")
def test_changes_of_the_command_line_are_those_of_the_scenario_that_it_names() -> None:
    form = formed("papers.files=7")
    assert len(ordered(form, "own").plan.body["datasets"][0]["entries"]) == 7
    assert len(ordered(form, "paced").plan.body["datasets"][0]["entries"]) == 20
    assert ordered(form, "small-reads").plan.name == "small-reads"


@pytest.mark.usefixtures("home")
def test_verifying_is_asked_of_every_scenario() -> None:
    for form in (formed("verify=true"), formed("verify=true", scenario=None)):
        assert ordered(form, "paced").plan.verifies
        assert ordered(form, "small-reads").plan.verifies
        with pytest.raises(ReplayerError, match="verify"):
            ordered(form, "wordpress-replay")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("users", "says"),
    [
        ("-3", "users must be from 1 to 1,000,000, got -3"),
        ("0", "users must be from 1 to 1,000,000, got 0"),
        ("1e1", "users must be a whole number, got '1e1'"),
        ("--3", "users must be a whole number, got '--3'"),
        ("2.5", "users must be a whole number, got '2.5'"),
    ],
)
def test_a_number_of_users_that_cannot_be_is_refused_as_it_was_sent(users: str, says: str) -> None:
    with pytest.raises(ReplayerError) as refused:
        formed().read({"user_count": [users], "spawn_rate": ["2"], "scenario": ["own"]})
    assert str(refused.value) == says


NUMBERS = {"user_count": "2", "spawn_rate": "2", "scenario": "own"}


@pytest.mark.usefixtures("home")
def test_the_numbers_of_a_scenario_are_changed_from_the_page() -> None:
    sent = {**NUMBERS, "datasets.papers.files": "7", "mix.look": " "}
    settings = formed().read({name: [value] for name, value in sent.items()})
    assert settings.changes == ("datasets.papers.files=7",)
    assert len(make_workload(settings, 1).plan.body["datasets"][0]["entries"]) == 7


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("mix.look", "/etc", "mix.look must be a whole number, got '/etc'"),
        ("mix.look", "1e3", "mix.look must be a whole number"),
        ("datasets.papers.manifest", "1", "datasets.papers.manifest: unknown field"),
        ("transactions.look", "1", "transactions.look: unknown field"),
        (".", "1", ".: unknown field"),
    ],
)
def test_of_a_scenario_only_its_numbers_are_changed_from_the_page(
    name: str, value: str, says: str
) -> None:
    sent = {**NUMBERS, name: value}
    with pytest.raises(ReplayerError, match=re.escape(says)):
        formed().read({each: [text] for each, text in sent.items()})


def searched(**changes: str) -> list[str]:
    fields = {"scenario": "own", "limits": "look.p95 < 200ms\r\nlook.errors < 1%\r\n", **changes}
    return formed("papers.files=7").read_search({name: [value] for name, value in fields.items()})


@pytest.mark.usefixtures("home")
def test_a_search_has_the_words_of_the_command_line() -> None:
    assert searched(budget="2m", by="users", precision="10%") == [
        *("capacity", "own.yaml", "--set=papers.files=7", "--target=mount"),
        *("--threshold=look.p95 < 200ms", "--threshold=look.errors < 1%"),
        *("--by=users", "--precision=10%", "--budget=120s"),
    ]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"limits": " \n"}, "limits: must name at least one"),
        ({"limits": "--output=/etc"}, "limits"),
        ({"scenario": "/etc/passwd"}, "scenario must be one of"),
        ({"precision": "0.1%"}, "precision must be one of"),
        ({"by": "--help"}, "by must be one of"),
        ({"budget": "soon"}, "run time"),
        ({"targets": "mount=/etc"}, "unknown target"),
        ({"output": "/etc"}, "output: unknown field"),
    ],
)
def test_a_search_takes_nothing_that_the_page_does_not_show(
    changes: dict[str, str], says: str
) -> None:
    with pytest.raises(ReplayerError) as refused:
        searched(**changes)
    assert says in str(refused.value)
