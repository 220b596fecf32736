"""``replayer study`` with the real fio, on a study of its own that takes seconds."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, Until

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

STUDY = """\
letter: Z
name: own
title: A study of one's own
source: this test
conditions: []
steps:
  first: {{fio: "{home}/first.fio"}}
  second: {{fio: "{home}/second.fio"}}
  third: {{scenario: no-such-scenario}}
tables:
  - title: Writes
    columns:
      - {{title: IOPS, step: first, of: first/write, figure: rate}}
      - {{title: mean µs, step: second, figure: mean, unit: µs}}
      - {{title: never, step: third, figure: mean, unit: s}}
    rank: {{column: IOPS, better: higher}}
    ratio: {{column: IOPS, to: slow, better: higher}}
    published:
      - {{target: slow, values: [0.001, 5, null]}}
      - {{target: fast, values: [1.0e+12, 1, null], says: 10x}}
"""


def write_study(shell: Shell, second: int = 1) -> Path:
    for name, runtime in (("first", 1), ("second", second)):
        text = f"[{name}]\nrw=write\nbs=4k\nsync=1\nsize=64k\ntime_based\nruntime={runtime}\n"
        (shell.home / f"{name}.fio").write_text(text)
    path = shell.home / "own.yaml"
    path.write_text(STUDY.format(home=shell.home))
    return path


def test_a_study_shows_the_users_targets_between_the_published_rows(shell: Shell) -> None:
    mount = shell.target()
    done = shell.run("study", write_study(shell), f"--target=mine={mount}", "--json", "-o", "s")
    assert done.went_well, done.err
    (table,) = done.document()["tables"]
    assert [(row["rank"], row["target"], row["published"]) for row in table["rows"]] == [
        (1, "fast", True),
        (2, "mine", False),
        (3, "slow", True),
    ]
    mine = table["rows"][1]
    rate, mean_us, never = mine["values"]
    assert never is None
    assert mine["ratio"] == pytest.approx(rate / 0.001)
    assert mean_us > 0
    assert mine["stored"] is not None
    run = json.loads((shell.home / "s/first-1/run.json").read_text())
    (found,) = run["summary"]["targets"][0]["overall"]["transactions"]
    assert rate == found["ops"][0]["rate_per_s"]
    assert list(mount.iterdir()) == []
    assert "third: this version has no scenario no-such-scenario" in done.err

    again = shell.run("study", "--resume", "s", "--details")
    assert again.code == done.code
    assert "10x" in again.out
    assert not (shell.home / "s/first-2").exists()


def test_an_interrupted_study_goes_on_where_it_was(shell: Shell, until: Until) -> None:
    mount, path = shell.target(), write_study(shell, second=2)
    process = shell.start("study", path, f"--target=mine={mount}", "-o", "s")
    until((shell.home / "s/second-1/timeline.csv").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    assert f"replayer study --resume {shell.home}/s" in err
    assert list(mount.iterdir()) == []
    done = shell.run("study", "--resume", "s", "--json")
    assert done.went_well, done.err
    attempts = done.document()["state"]["attempts"]
    assert [each["done"] for each in attempts["first"]] == [True]
    assert [each["done"] for each in attempts["second"]] == [False, True]
    mine = next(r for r in done.document()["tables"][0]["rows"] if not r["published"])
    assert mine["values"][1] is not None


def test_a_step_that_cannot_run_is_named_and_the_others_go_on(shell: Shell) -> None:
    path = write_study(shell)
    (shell.home / "first.fio").write_text("[first]\nrw=write\nsize=4000t\n")
    done = shell.run("study", path, f"--target=mine={shell.target()}", "-o", "s")
    assert done.code == 3
    said = " ".join(done.out.split())
    assert said.startswith("FAIL study Z (own): ")
    assert "first: " in said
    assert "needs 4,398,046,511,104,000 bytes, only" in said
    attempts = json.loads((shell.home / "s/study.json").read_text())["attempts"]
    assert {name: tries[0]["done"] for name, tries in attempts.items()} == {
        "first": False,
        "second": True,
        "third": True,
    }


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["D", "--rounds", "2"], "--rounds"),
        (["D", "--quick"], "--quick"),
        (["--target", "t1"], "--target"),
        (["--json"], "--json"),
        (["D", "--target", "t1", "--quick", "--rounds", "2"], "--rounds"),
        (["--resume", "s", "--output", "t"], "--output"),
        (["D", "--resume", "s"], "D"),
    ],
)
def test_words_without_effect_are_refused(shell: Shell, words: list[str], word: str) -> None:
    done = shell.run("study", *words)
    assert done.code == 2
    assert f"{word} has no effect" in done.err


@pytest.mark.nightly
def test_a_step_ends_with_a_study_that_is_killed_and_the_study_goes_on(
    shell: Shell, until: Until
) -> None:
    mount, path = shell.target(), write_study(shell, second=60)
    process = shell.start("study", path, f"--target=mine={mount}", "-o", "s")
    until((shell.home / "s/second-1/timeline.csv").exists)
    process.kill()
    process.communicate()
    (shell.home / "second.fio").write_text("[second]\nrw=write\nbs=4k\nsize=64k\n")
    done = shell.run("study", "--resume", "s", "--json")
    assert done.went_well, done.err
    assert json.loads((shell.home / "s/second-1/run.json").read_text())["status"] == "interrupted"
    attempts = done.document()["state"]["attempts"]
    assert [each["folder"] for each in attempts["second"]] == ["second-2"]
    assert list(mount.iterdir()) == []
