"""Whether a run of ours in another process has measured."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replayer.run.own_run import OwnRun
from tests.unit.runs import RunWriter, make_run


def ended(folder: Path, code: int) -> OwnRun:
    """A run whose process has ended with a code, or by a signal."""
    script = f"import os; os.kill(os.getpid(), {-code}) if {code} < 0 else os._exit({code})"
    process = subprocess.Popen((sys.executable, "-c", script))
    process.wait(20)
    return OwnRun(process, folder)


@pytest.mark.parametrize(
    ("code", "status", "measured"),
    [
        (0, "finished", True),
        (1, "finished", True),
        (4, "interrupted", True),
        (3, "failed", False),
        (-signal.SIGINT, "finished", True),
        (-signal.SIGINT, "interrupted", True),
        (-signal.SIGINT, "running", False),
        (-signal.SIGKILL, "finished", False),
    ],
)
def test_a_run_has_measured_also_if_it_is_interrupted_just_when_all_is_written(
    tmp_path: Path, code: int, status: str, *, measured: bool
) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", [1000] * 20)
    writer.write(make_run(status=status))
    run = ended(tmp_path / "run", code)
    assert run.record is not None
    assert run.counts(run.record) is measured


def test_what_made_no_run_folder_has_not_measured(tmp_path: Path) -> None:
    assert ended(tmp_path / "none", 0).record is None
