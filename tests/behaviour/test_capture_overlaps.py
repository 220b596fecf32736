"""Captures of processes that make, find and remove the same files at once: real strace."""

import json
import shutil

import pytest

from tests.behaviour.shell import Shell, compile_program, replay_in_order

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def capture(shell: Shell) -> dict[str, int]:
    """Record sixteen processes in an own root. Returns how often results contradicted the trace."""
    program = compile_program("overlaps.c", shell.home / "overlaps")
    (shell.home / "root").mkdir()
    words = ("sh", "-c", 'cd root && exec "$0"', str(program))
    done = shell.run("capture", "-q", "-o", "trace", "--root", "root", "--", *words)
    assert done.code == 0, done.err
    counts = json.loads((shell.home / "trace/trace.json").read_text())["counts"]
    assert counts["events"] > 2000
    repairs: dict[str, int] = counts["tree_repairs"]
    return repairs


@pytest.mark.timeout(120)
def test_calls_that_overlap_are_replayed_with_the_recorded_results(shell: Shell) -> None:
    assert capture(shell)["unexplained"] == 0
    for pace in ("asap", "closed"):
        done = replay_in_order(shell, pace)
        found = done.document()["replay"]["results"]
        assert found["matched"] == found["compared"] > 2000, found["diverged"]
        (_, order) = done.document()["verdict"]["judgements"]
        assert (order["threshold"], order["outcome"]) == ("order kept", "pass")
