"""Captures of programs of several processes that wait for each other: real strace, real pipes."""

import json
import shutil
import sys

import pytest

from tests.behaviour.shell import Done, Shell, compile_program, replay_in_order

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

PIPELINE = """
for i in 1 2 3 4 5 6 7 8; do echo "$i" > "d$i"; echo "$i"; done |
while read -r i; do cat "d$i"; done > all
"""
SOCKETS = """
import os, socket, time
one, other = socket.socketpair()
if os.fork():
    for number in range(8):
        os.mkdir(f"made-{number}")
        os.write(one.fileno(), b"x")
        os.read(one.fileno(), 1)
    os.wait()
else:
    for number in range(8):
        os.read(other.fileno(), 1)
        os.rmdir(f"made-{number}")
        os.write(other.fileno(), b"x")
"""


def capture(shell: Shell, *command: str) -> dict[str, int]:
    """Record a command in an own root. Returns the trace's edges by reason."""
    (shell.home / "root").mkdir()
    words = ("sh", "-c", 'cd root && exec "$@"', "sh", *command)
    done = shell.run("capture", "-q", "-o", "trace", "--root", "root", "--", *words)
    assert done.code == 0, done.err
    counts = json.loads((shell.home / "trace/trace.json").read_text())["counts"]
    edges: dict[str, int] = counts["edges_by_reason"]
    return edges


def assert_all_is_as_recorded(done: Done) -> None:
    found = done.document()["replay"]["results"]
    assert found["matched"] == found["compared"] > 0
    assert found["diverged"] == []
    (_, order) = done.document()["verdict"]["judgements"]
    assert (order["threshold"], order["outcome"]) == ("order kept", "pass")


def latency_ns(done: Done) -> int:
    (target,) = done.document()["summary"]["targets"]
    (transaction,) = target["overall"]["transactions"]
    found: int = transaction["latency"]["mean_ns"]
    return found


@pytest.mark.parametrize("pace", ["asap", "closed", "timed"])
def test_who_reads_from_a_pipe_comes_after_who_wrote(shell: Shell, pace: str) -> None:
    assert capture(shell, "sh", "-c", PIPELINE)["pipe"] >= 7
    assert_all_is_as_recorded(replay_in_order(shell, pace))


def test_pairs_of_sockets_are_followed_both_ways(shell: Shell) -> None:
    # The names say that a rmdir comes after its mkdir; only an answer, that the next mkdir does.
    assert capture(shell, sys.executable, "-c", SOCKETS)["pipe"] >= 14
    assert_all_is_as_recorded(replay_in_order(shell, "asap"))


def test_who_joins_a_thread_comes_after_its_last_event(shell: Shell) -> None:
    program = compile_program("joins.c", shell.home / "joins", "-pthread")
    # No path says that the folder from before goes after the thread's one was made.
    assert capture(shell, str(program))["wait"] == 1
    slow = replay_in_order(shell, "closed")
    assert_all_is_as_recorded(slow)
    assert latency_ns(slow) >= 250_000_000  # 300, less what the tracer may have added


def test_what_one_process_sleeps_the_others_wait(shell: Shell) -> None:
    capture(shell, "sh", "-c", "touch a; (sleep 0.4; touch b; echo) | cat; touch c")
    # 400, less what the tracer may have added
    assert latency_ns(replay_in_order(shell, "closed")) >= 350_000_000


def test_what_a_process_does_behind_its_last_event_takes_time_too(shell: Shell) -> None:
    capture(shell, "sh", "-c", "echo > a; sleep 0.4")
    assert latency_ns(replay_in_order(shell, "closed")) >= 350_000_000
    assert latency_ns(replay_in_order(shell, "asap")) < 350_000_000
