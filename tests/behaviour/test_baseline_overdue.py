"""What becomes of a job of fio whose I/O never comes back, as on a mount that stops answering."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, Until
from tests.behaviour.test_baseline import folder_of, has_measured, parent_of, still_running

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

IMPATIENT = """\
from replayer.baseline import turn
from replayer.cli import main
turn.LATE_S = 1.0
raise SystemExit(main())
"""
"""The program, but that it does not wait for two minutes."""
JOBS = "[a]\nioengine=psync\nrw=write\nbs=4k\nsize=1m\nruntime=2\ntime_based\nnumjobs=2\n"


def jobs_of(mount: Path) -> list[int]:
    pids = still_running(mount)
    return [pid for pid in pids if parent_of(pid) in pids]


def test_a_job_that_had_to_be_killed_as_it_did_not_end_leaves_the_run_unproven(
    shell: Shell, until: Until
) -> None:
    mount, other = shell.target(), shell.target("other")
    (shell.home / "own.fio").write_text(JOBS)
    words = ("--target", f"a={mount}", "--target", f"b={other}", "--stop-timeout=1s", "--json")
    process = shell.start("baseline", "own.fio", *words, program=("-c", IMPATIENT))
    until(lambda: has_measured(shell, "a"))
    job, _ = jobs_of(mount)
    os.kill(job, signal.SIGSTOP)  # it makes no headway, whatever it is asked to do
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    document = json.loads(out)
    assert document["status"] == "finished"
    assert document["verdict"]["outcome"] == "inconclusive"
    assert "users hung in a call: their last calls are in no figure" in str(
        document["verdict"]["reasons"]
    )
    (warning,) = (each for each in document["warnings"] if each["message"].startswith("a: fio"))
    assert warning["message"].endswith("was stopped, then killed: its last I/Os are in no figure")
    # Nothing more is run where calls hang, and what was made there goes.
    assert [path.name for path in (folder_of(shell) / "fio").glob("*.json")] == ["0-own-0-0.json"]
    assert [*mount.iterdir(), *other.iterdir()] == []


def test_a_job_that_is_late_and_ends_when_it_is_asked_to_is_told_of_and_judged(
    shell: Shell,
) -> None:
    (shell.home / "own.fio").write_text(JOBS.replace("runtime=2\ntime_based", "rate=10k,10k"))
    text = IMPATIENT.replace("LATE_S = 1.0", "SILENT_S = -1.0")
    words = ("baseline", "own.fio", "--target", shell.target(), "--json")
    done = shell.run(*words, program=("-c", text))
    assert done.code in {0, 4}, done.err
    document = done.document()
    messages = [each["message"] for each in document["warnings"]]
    assert "mount: fio did not end in time and was stopped" in messages
    assert "hung in a call" not in done.out
