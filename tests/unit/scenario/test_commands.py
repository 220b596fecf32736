"""check, scenarios and schema: results on stdout, refusals with exit code 2, no mount touched."""

import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from replayer.cli import check, main
from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.loading import load_scenario
from replayer.scenario.shipped import shipped_scenarios
from tests.unit.scenario.texts import SMALL, changed


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scenario file in an empty current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    return "small.yaml"


class Shipped:
    """Shipped scenarios as they are loaded, compiled and described the first time."""

    scenario = staticmethod(cache(load_scenario))
    plan = staticmethod(cache(lambda name: compile_plan(Shipped.scenario(name))))
    summary = staticmethod(cache(lambda name: describe_plan(Shipped.plan(name))))


@pytest.fixture
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have check compile a shipped scenario for the first test alone that compares it."""
    monkeypatch.setattr(check, "load_scenario", lambda name, _: Shipped.scenario(name))
    monkeypatch.setattr(check, "compile_plan", lambda scenario, **_: Shipped.plan(scenario.name))
    monkeypatch.setattr(check, "describe_plan", lambda plan: Shipped.summary(plan.body["name"]))


def words(text: str) -> str:
    """A text on one line, however wide it was printed."""
    return " ".join(text.split())


def test_check_shows_what_would_run_and_touches_nothing(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", small]) == 0
    shown = words(capsys.readouterr().out)
    for piece in (
        "2 users, closed loop: the next transaction at once; 2.00 s measured on each target",
        "look           90.0 %  4 ops, 0 lookups expected to fail, reads 10.0 kB, writes 0 B",
        "dataset       files: 10 files, 2 directories, 100 kB",
        "working set   10 files, 100 kB",
        "needs         143 kB of free space, 15 inodes, plus what the transactions write",
        "threshold     look.p95 < 200ms",
        "threshold     errors == 0  (default)",
    ):
        assert words(piece) in shown
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("arrivals={rate: 30/s, process: even}", "open loop: even arrivals, 30 a second in all"),
        ("users.every=500ms", "paced loop: one transaction every 500 ms and user"),
        (
            "users.think_time={uniform: [1s, 2s]}",
            "closed loop: the next transaction after a think time of 1.00 s to 2.00 s",
        ),
    ],
)
def test_check_says_when_transactions_begin(
    small: str, capsys: pytest.CaptureFixture[str], change: str, says: str
) -> None:
    assert main(["check", small, "--set", change]) == 0
    assert f"2 users, {says}; 2.00 s measured" in words(capsys.readouterr().out)
    assert main(["check", small, "--set", change, "--json"]) == 0
    pacing = json.loads(capsys.readouterr().out)["pacing"]
    assert says.endswith(pacing["says"])
    assert sum(value is not None for value in pacing.values()) >= 2


def test_check_takes_users_seed_and_overrides(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["check", small, "-u", "7", "--seed", "9", "--set", "files.files=20", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["users"], found["seed"]) == (7, 9)
    assert found["datasets"][0]["files"] == 20
    assert found["transactions"][0]["ops"] == {"close": 1, "open": 1, "read": 2}


@pytest.mark.parametrize("command", ["check", "run", "baseline"])
@pytest.mark.parametrize("seed", ["-1", "18446744073709551616", "one"])
def test_every_command_takes_the_same_seeds(
    command: str, seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "small.yaml", f"--seed={seed}"]) == 2
    assert "--seed: must be a whole number from 0 to 184" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("count: 2", "count: 0"), "replayer: small.yaml:2: users.count must be at least 1"),
        (changed("200ms", "200parsecs"), "replayer: small.yaml:17: threshold"),
        (changed("look.p95", "look.p95x"), "replayer: small.yaml:17: threshold"),
    ],
)
def test_check_refuses_a_mistake_with_exit_code_2(
    small: str, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(small).write_text(text)
    assert main(["check", small]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.out == ""


@pytest.mark.parametrize("name", sorted(shipped_scenarios()))
def test_check_accepts_every_shipped_scenario(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(name)
    assert max(map(len, lines)) <= 140


@pytest.mark.parametrize(
    ("mix", "says"),
    [
        ("{rest: 1}", "rest makes no file call: such a run is inconclusive"),
        ("{rest: 1, look: 1}", "rest makes no file call: the mount did not cause its times"),
        ("{look: 1}", None),
    ],
)
def test_check_warns_of_transactions_of_the_mix_that_make_no_call(
    mix: str, says: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text(f"""\
name: idle
about: One transaction makes no file call.
duration: 1s
datasets: {{files: {{files: 2, sizes: 1KiB}}}}
mix: {mix}
transactions:
  rest: [think: 1ms]
  look: [stat: {{from: files, pick: uniform}}]
""")
    assert main(["check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warning"] == says
    assert main(["check", str(path)]) == 0
    assert ("\nwarning " in capsys.readouterr().out) == (says is not None)


PAGE = "front_page=" + str(Path(__file__).parents[3] / "traces/wordpress/front-warm")


@pytest.mark.usefixtures("compiled_once")
def test_check_compares_a_transaction_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "wordpress-pages", "--against", f"{PAGE}:/"]) == 0
    shown = capsys.readouterr().out
    for piece in (
        "front_page against ",
        "front-warm:/ (10 requests)",
        "access                          22.0 %     22.0 %     +0.0",
        "not compared                chdir 1: plans have no such call",
        "alike: the largest difference is 0.0 points",
    ):
        assert piece in shown


@pytest.mark.usefixtures("compiled_once")
def test_check_names_the_calls_that_a_run_makes_beyond_those_of_a_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    word = "plugin_install_only=wordpress/plugin-install:plugin upload+install"
    assert main(["check", "wordpress-update", "--against", word]) == 0
    shown = capsys.readouterr().out
    assert "only find the end           sendfile 1: the trace has none of these" in shown
    assert "calls                           18,448     19,128" in shown


@pytest.mark.usefixtures("compiled_once")
def test_check_knows_shipped_traces_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    word = "front_page=wordpress/front-warm:/"
    assert main(["check", "wordpress-pages", "--against", word]) == 0
    assert "alike: the largest difference is 0.0 points" in capsys.readouterr().out


@pytest.mark.usefixtures("compiled_once")
def test_check_exits_with_1_when_a_transaction_is_not_like_the_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = PAGE.replace("front_page=", "login=")
    assert main(["check", "wordpress-pages", "--against", other, "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["against"]
    assert (found["transaction"], found["alike"], found["limit_points"]) == ("login", False, 2.0)
    assert main(["check", "wordpress-pages", "--against", other]) == 1
    assert "not alike: 9 shares differ by more than 2 points" in capsys.readouterr().out


@pytest.mark.usefixtures("compiled_once")
@pytest.mark.parametrize(
    ("word", "message"),
    [
        (PAGE.replace("front_page=", ""), "has 11 transactions in its mix\nhint: give one of them"),
        (PAGE.replace("front_page", "front"), "has no transaction front\nhint: it has front_page"),
        (f"{PAGE}:/none", "has no request /none\nhint: it has /"),
        ("front_page=nowhere:/", "no such trace, neither a folder nor a shipped trace"),
        ("front_page=wordpress/frnt-warm:/", "hint: did you mean wordpress/front-warm?"),
        ("front_page=", "a trace is missing"),
    ],
)
def test_check_refuses_a_comparison_that_cannot_be_made(
    word: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "wordpress-pages", "--against", word]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("compiled_once")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--against", PAGE, "--without", "raed"], "has this call\nhint: did you mean read?"),
        (["--without", "read"], "--without read has no effect: nothing is compared"),
    ],
)
def test_check_refuses_to_leave_out_what_there_is_not(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "wordpress-pages", *words]) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_scenario_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "wordpres-pages"]) == 2
    assert "hint: did you mean wordpress-pages?" in capsys.readouterr().err


def test_a_directory_is_no_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "is not a file" in capsys.readouterr().err


def test_scenarios_lists_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    rows = [line for line in lines if not line.startswith(" ")]  # others go on with a row
    assert [row.split()[0] for row in rows] == sorted(shipped_scenarios())
    assert main(["scenarios", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [found["name"] for found in listed] == sorted(shipped_scenarios())
    assert all(found["about"] and found["assumptions"] for found in listed)


@pytest.mark.parametrize("kind", ["scenario", "run"])
def test_schema_prints_a_json_schema(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))
