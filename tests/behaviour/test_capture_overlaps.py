"""Captures of processes that make, find and remove the same files at once: real strace."""

import json
import shutil

import pytest

from tests.behaviour.shell import Shell, compile_program

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


OFF_OF_100 = 1
"""Chosen: a few of some 3,000 results stay that no order explains."""


@pytest.mark.timeout(120)
def test_a_recording_of_calls_that_overlap_is_imported_in_bounded_time(shell: Shell) -> None:
    program = compile_program("overlaps.c", shell.home / "overlaps")
    (shell.home / "root").mkdir()
    words = ("sh", "-c", 'cd root && exec "$0"', str(program))
    done = shell.run("capture", "-q", "-o", "trace", "--root", "root", "--", *words)
    assert done.code == 0, done.err
    counts = json.loads((shell.home / "trace/trace.json").read_text())["counts"]
    assert counts["events"] > 2000
    assert 100 * counts["tree_repairs"]["unexplained"] <= OFF_OF_100 * counts["events"]
