"""``replayer fit``: pauses that make a replay as long as the command was by itself."""

import json
import signal
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, Until

PROGRAM = """
import time
status = open("/proc/self/status").read()
open("root/file").close()
time.sleep(0.5 if "TracerPid:\\t0\\n" in status else 0.2)
open("root/file").close()
"""
"""It pauses longer when nobody watches."""


def captured(shell: Shell, *words: str) -> Path:
    root, program = shell.home / "root", shell.home / "program.py"
    root.mkdir()
    (root / "file").write_text("content")
    program.write_text(PROGRAM)
    done = shell.run(
        "capture", "-o", "trace", "--root", "root", *words, "--", "python3", "-S", program
    )
    assert done.code == 0, done.err
    assert ("fit its pauses with: replayer fit" in done.err) == ("--rehearse" in words)
    return shell.home / "trace"


@pytest.mark.nightly
def test_a_fitted_replay_takes_as_long_as_the_command(shell: Shell) -> None:
    trace = captured(shell, "--rehearse", "3")
    done = shell.run("fit", "trace", "--target", shell.home, "--rounds", "2")
    assert done.code == 0, done.err
    assert "closed: pauses at 100 %, 2 rounds" in done.err
    calibration = json.loads((trace / "trace.json").read_text())["calibration"]
    untraced_ns, fit = calibration["untraced"]["elapsed_ns"], calibration["fit"]
    assert 180 < fit["pauses_percent"] < 320
    assert abs(fit["closed_ns"] / untraced_ns - 1) < 0.1
    assert f"pauses are now {fit['pauses_percent']} %" in done.out
    assert f"{fit['pauses_percent']} % of the recorded ones" in shell.run("show", "trace").out
    ran = shell.run("replay", "trace", "--target", shell.home, "-o", "run", "--details")
    assert ran.code in {0, 4}, ran.err
    assert f"fitted to that time: {fit['pauses_percent']} % of those recorded" in ran.out
    summary = json.loads((shell.home / "run/run.json").read_text())["summary"]
    (transaction,) = summary["targets"][0]["overall"]["transactions"]
    assert transaction["latency"]["mean_ns"] > 0.9 * untraced_ns
    # Fitted again, it begins at what was recorded.
    again = shell.run("fit", "trace", "--target", shell.home, "--rounds", "2", "--json", "--quiet")
    assert again.code == 0, again.err
    assert again.err == ""
    assert json.loads(again.out)["pauses_percent"] > 180


def test_what_cannot_be_fitted_is_refused_and_left_as_it_is(shell: Shell) -> None:
    trace = captured(shell)
    before = (trace / "trace.json").read_bytes()
    unknown = shell.run("fit", "trace", "--target", shell.home)
    assert unknown.code == 2
    assert "has no time of the command without the tracer" in unknown.err
    assert "--rehearse 20" in unknown.err
    never = shell.run("fit", "trace", "--target", shell.home, "--rounds", "0")
    assert never.code == 2
    assert "--rounds" in never.err
    assert (trace / "trace.json").read_bytes() == before


def test_a_target_that_is_not_there_leaves_the_trace_as_it_was(shell: Shell) -> None:
    trace = captured(shell, "--rehearse", "2")
    before = (trace / "trace.json").read_bytes()
    done = shell.run("fit", "trace", "--target", shell.home / "nowhere", "--quiet")
    assert done.code == 3
    assert "the asap replay failed" in done.err
    assert "nowhere" in done.err
    assert (trace / "trace.json").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_change(
    shell: Shell, until: Until, number: signal.Signals
) -> None:
    trace, target = captured(shell, "--rehearse", "2"), shell.target()
    before = (trace / "trace.json").read_bytes()
    process = shell.start("fit", "trace", "--target", target, "--rounds", "100", "--quiet")
    until(lambda: any(target.iterdir()))
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 4
    assert (trace / "trace.json").read_bytes() == before
    until(lambda: not any(target.iterdir()))
