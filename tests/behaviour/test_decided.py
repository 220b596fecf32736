"""Runs of several targets that go on until they have decided."""

import json
import signal
import tempfile
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, Until

SYNCED = """\
name: synced
about: Files that are written and synced.
users: {count: 1}
duration: 6s
datasets:
  work: {directory: true, per: user}
mix: {save: 1}
transactions:
  save:
    - open: {in: work, name: "note", flags: [create, wronly]}
    - write: {size: 4KiB}
    - fsync
    - close
"""


def two(shell: Shell) -> tuple[str, ...]:
    (shell.home / "synced.yaml").write_text(SYNCED)
    return tuple(f"--target={name}={shell.target(name)}" for name in ("one", "two"))


def turns_begun(run: Path) -> int:
    events = run / "events.jsonl"
    lines = events.read_text().splitlines() if events.exists() else []
    return sum('"measured"' in line and '"phase"' in line for line in lines)


def test_a_large_difference_is_decided_after_three_rounds(shell: Shell) -> None:
    (shell.home / "synced.yaml").write_text(SYNCED)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        targets = (f"--target=memory={memory}", f"--target=disk={shell.target()}")
        done = shell.run("run", "synced.yaml", *targets, "--budget", "60s", "-o", "out")
    said = "runs until decided: at least 3 rounds of 2 s on each target, at most 60 s"
    assert said in " ".join(done.err.split())
    load = shell.run("report", "out", "--format", "json").document()["load"]
    assert load["duration_s"] == 2 * load["rounds"]
    if done.code == 0:  # or else other programs kept the client from measuring
        assert load["rounds"] == 3
        assert "Use memory: save takes" in done.out
        assert "stopped after 3 rounds: decided" in done.out


@pytest.mark.nightly
def test_equal_targets_end_within_the_budget_and_say_how_well_they_are_known(shell: Shell) -> None:
    words = ("run", "synced.yaml", *two(shell), "-o", "out")
    done = shell.run(*words, "--budget", "20s", "--precision", "2%")
    load = shell.run("report", "out", "--format", "json").document()["load"]
    assert load["until"] == {"precision": 0.02, "budget_s": 20, "most_rounds": 5}
    assert 2 * load["duration_s"] <= 20
    told = "the budget of 20 s is spent: save p"
    assert told in done.out
    assert " is known to \N{PLUS-MINUS SIGN}" in done.out


@pytest.mark.nightly
def test_workers_go_on_until_their_run_is_decided(shell: Shell) -> None:
    words = ("run", "synced.yaml", *two(shell), "-u", "2", "--processes", "2", "-o", "out")
    done = shell.run(*words, "--budget", "12s")
    load = shell.run("report", "out", "--format", "json").document()["load"]
    assert (load["rounds"], load["looks"]) == (3, 1), done.err
    assert done.code in {0, 4}, done.err


def test_a_run_that_is_interrupted_has_the_rounds_that_were_begun(
    shell: Shell, until: Until
) -> None:
    process = shell.start("run", "synced.yaml", *two(shell), "-o", "out", "--json")
    until(lambda: turns_begun(shell.home / "out") > 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    document = json.loads(out)
    assert (process.returncode, document["status"]) == (4, "interrupted"), err
    assert (document["load"]["rounds"], document["load"]["duration_s"]) == (2, 4)
    assert document["ended_by"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--budget", "1m", "-t", "3s"), "--budget has no effect: -t fixes the length of the run"),
        (("--precision", "5%", "--rounds", "4"), "--rounds fixes the length of the run"),
        (("--budget", "5s"), "--budget 5s: must be at least 12s, for 3 rounds of 2 s on 2 targets"),
        (("--precision", "0"), "must be a percentage from 1% to 100%, such as 10%, got '0'"),
        (("--budget", "soon"), "must be whole seconds, such as 90, 90s, 5m or 1h20m, got 'soon'"),
        (
            ("--budget", "1m", "--set", "iterations=3"),
            "when the users have made their transactions",
        ),
    ],
)
def test_what_cannot_be_decided_so_is_refused(
    shell: Shell, words: tuple[str, ...], says: str
) -> None:
    done = shell.run("run", "synced.yaml", *two(shell), *words)
    assert done.code == 2
    assert says in done.err


def test_one_target_has_nothing_to_decide_between(shell: Shell) -> None:
    two(shell)
    done = shell.run("run", "synced.yaml", "--budget", "1m")
    assert done.code == 2
    assert "there is one target, and nothing to decide between" in done.err
    assert not Path(shell.home / "replayer-runs").exists()
