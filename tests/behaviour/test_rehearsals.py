"""``replayer capture --rehearse``: what a command computes is learnt without the tracer."""

import json
import shlex
import signal
from pathlib import Path

import pytest

from replayer.capture.processes import is_running
from tests.behaviour.shell import Shell, Until

PROGRAM = """
import os
for number in range(200):
    os.close(os.open(f"root/{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    sum(range(30_000))
"""
"""Makes 200 files, and computes for about a millisecond after each."""


def read(trace: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((trace / name).read_text())
    return found


def test_pauses_hold_what_the_command_computes_by_itself(shell: Shell) -> None:
    root, program = shell.home / "root", shell.home / "program.py"
    root.mkdir()
    program.write_text(PROGRAM)
    words = ["--rehearse", "5", "--prepare", "rm -f root/*"]
    done = shell.run(
        "capture", "-o", "trace", "--root", "root", *words, "--", "python3", "-S", program
    )
    assert done.code == 0, done.err
    calibration = read(shell.home / "trace", "trace.json")["calibration"]
    assert isinstance(calibration, dict)
    assert calibration["untraced"]["runs"] == 5
    assert calibration["untraced"]["user_ns"] > 30_000_000
    assert "without the tracer the command took" in shell.run("show", "trace").out
    ran = shell.run(
        "replay",
        "trace",
        "--target",
        shell.home,
        "-o",
        "run",
        "--threshold",
        "errors == 0",
        "--details",
    )
    assert ran.code in {0, 4}, ran.err
    assert "without the tracer, where it ran" in ran.out
    summary = read(shell.home / "run", "run.json")["summary"]
    assert isinstance(summary, dict)
    (transaction,) = summary["targets"][0]["overall"]["transactions"]
    took_ns = transaction["latency"]["mean_ns"]
    # The interpreter's start is no part of it, and a busy machine makes it longer.
    assert took_ns > 0.4 * calibration["untraced"]["user_ns"]


def test_a_command_that_fails_is_not_recorded(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ("--rehearse", "2", "--", "mkdir", "root/new")
    done = shell.run("capture", "-o", "trace", "--root", "root", *words)
    assert done.code == 2
    assert "rehearsal 2 of 2 ended with exit status 1: mkdir: cannot create" in done.err
    assert "--prepare" in done.err
    assert not [path for path in shell.home.iterdir() if "trace" in path.name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rehearse", "0", "--", "true"), "must be a number of runs from 1 to 10,000"),
        (("--rehearse", "2", "-p", "1"), "--rehearse runs the command repeatedly"),
        (("--prepare", "true", "--", "true"), "--prepare has no effect without --rehearse"),
    ],
)
def test_what_makes_no_sense_is_refused(shell: Shell, words: tuple[str, ...], said: str) -> None:
    (shell.home / "root").mkdir()
    done = shell.run("capture", "-o", "trace", "--root", "root", *words)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_rehearsal_and_all_that_it_started(
    shell: Shell, until: Until, number: signal.Signals
) -> None:
    (shell.home / "root").mkdir()
    pid = shell.home / "pid"
    command = f"sleep 300 & echo $! > {shlex.quote(str(pid))}; wait"
    words = ("--rehearse", "2", "--", "sh", "-c", command)
    process = shell.start("capture", "-o", "trace", "--root", "root", *words)
    until(lambda: pid.exists() and pid.read_text().strip())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 4
    until(lambda: not is_running(int(pid.read_text())))
    assert not [path for path in shell.home.iterdir() if "trace" in path.name]
