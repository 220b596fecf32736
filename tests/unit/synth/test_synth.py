"""A scenario of a trace makes the calls of its requests."""

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from replayer.cli import main
from replayer.cli.check import compare_with_traces
from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.loading import load_scenario
from replayer.synth.calls import Call, open_step, path_step, steps_of_file
from replayer.synth.requests import read_traffic
from replayer.synth.scenario import MOST_WAYS
from replayer.trace.shipped import shipped_traces

LOOKS = (
    *("wordpress/front-warm", "wordpress/login", "wordpress/page-cache-hit"),
    *("wordpress/single-post", "wordpress/front-cold", "wordpress/dashboard"),
)
"""Traces whose requests change no name."""


@pytest.fixture(params=LOOKS)
def trace(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name: str = request.param
    assert main(["synth", name, "-o", "mine.yaml"]) == 0
    return name


def test_the_mix_of_calls_is_that_of_the_trace(trace: str) -> None:
    scenario = load_scenario("mine.yaml")
    summary = describe_plan(compile_plan(scenario, users=4))
    for likeness, label in (
        (compare_with_traces(summary, [f"{name}={trace}:{label}"])[0], label)
        for name, label in labels_of(trace).items()
    ):
        assert likeness.alike, (label, likeness.largest)
        assert abs(likeness.amounts[0].difference) <= 0.01 * likeness.amounts[0].trace


def labels_of(trace: str) -> dict[str, str]:
    """Return the label of each transaction, in the order of both."""
    requests = read_traffic(shipped_traces()[trace]).requests
    labels = dict.fromkeys(request.label for request in requests)
    return dict(zip(load_scenario("mine.yaml").transactions, labels, strict=True))


def test_what_a_file_is_used_for_is_told_in_steps() -> None:
    whole = [Call("read", size=8192, result=8192), Call("read", size=8192, result=100)]
    ends = [Call("read", size=8192, result=0), Call("read", size=8192, result=0)]
    close = Call("close")
    counted = Counter[str]()
    steps = [*steps_of_file([*whole, *ends, Call("ioctl"), close], counted)]
    assert steps == [
        {"read": {"size": "8192B", "until": "end"}},
        {"read": {"size": "8192B"}},
        "close",
    ]
    assert counted == {"ioctl": 1}


@pytest.mark.parametrize(
    ("call", "step"),
    [
        (Call("stat", result=0), {"stat": {"expect": "layout"}}),
        (Call("lstat", result=-2), {"lstat": {"expect": "layout"}}),
        (Call("access", flags=4, result=-13), {"access": {"check": "read", "expect": "EACCES"}}),
        (Call("utimens", result=0), {"utimens": {}}),
        (Call("statfs", result=0), None),
    ],
)
def test_a_look_at_a_path_is_a_step(call: Call, step: object) -> None:
    assert path_step(call) == step


@pytest.mark.parametrize(
    ("flags", "result", "step"),
    [
        (0o2000000, 3, "open"),
        (0o102, 3, {"open": {"flags": ["rdwr", "create"]}}),
        (0o200000, -2, {"open": {"flags": ["rdonly", "directory"], "expect": "layout"}}),
        (0o4010001, 3, {"open": {"flags": ["wronly", "sync"]}}),
    ],
)
def test_an_open_has_its_flags(flags: int, result: int, step: object) -> None:
    assert open_step(Call("open", flags=flags, result=result)) == step


def test_requests_that_change_names_are_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["synth", "wordpress/page-cache-miss", "-o", "mine.yaml", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["transactions"]
    assert (told["ways"], told["replayed_for"]) == ([], ["mkdir", "rename"])
    written = yaml.safe_load(Path("mine.yaml").read_text())
    assert written["transactions"] == {
        "post": {"trace": "wordpress/page-cache-miss", "request": "post"}
    }
    assert list(load_scenario("mine.yaml").transactions) == ["post"]


def test_any_name_of_a_file_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["synth", "wordpress/page-cache-hit", "-o", "Kunden, {neu} & alt.yaml"]) == 0
    assert load_scenario("Kunden, {neu} & alt.yaml").name == "kunden-neu-alt"


def test_many_requests_have_few_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["synth", "wordpress/page-cache-hit", "-o", "mine.yaml"]) == 0
    (steps,) = yaml.safe_load(Path("mine.yaml").read_text())["transactions"].values()
    weights = [branch["weight"] for branch in steps[0]["choose"]]
    assert len(weights) <= MOST_WAYS
    assert sum(weights) == 30


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("wordpress/deploy-cp", "-o", "mine.yaml"), "has no requests"),
        (("wordpress/login", "-o", "mine"), "-o must end in .yaml"),
        (("nothing", "-o", "mine.yaml"), "no such trace"),
        (("wordpress/login", "-o", "there.yaml"), "cannot be created"),
        (("wordpress/login", "-o", "mine.yml"), "mine.yml exists"),
    ],
)
def test_what_cannot_be_made_is_told(
    words: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "mine.yml").write_text("name: mine\n")
    assert main(["synth", *words]) in {2, 3}
    assert says in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"there", "mine.yml"}
    assert (tmp_path / "mine.yml").read_text() == "name: mine\n"
