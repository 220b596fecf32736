"""Capacities of a mount that queues, which theory knows, and of the mounts of a fleet."""

import json
import math
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, make_shell
from tests.mounts.passing import Passing, queueing

pytestmark = pytest.mark.mounts

SERVICE_S = 0.002
LIMIT_S = 0.02
SHARE = 0.05


def capacity_of_queue(service_s: float, limit_s: float) -> float:
    """Return at which load the p95 of one server with exponential service is the limit.

    Times in the queue are exponential, too, with rate 1/S - load (M/M/1).
    """
    return 1 / service_s - math.log(1 / SHARE) / limit_s


CAPACITY = capacity_of_queue(SERVICE_S, LIMIT_S)
SCENARIO = """
name: sync
about: One call that waits.
users: {count: 64}
duration: 10s
datasets:
  files: {files: 64, sizes: 4KiB}
mix: {sync: 1}
transactions:
  sync: [open: {from: files, pick: own, flags: [wronly]}, fsync, close]
"""


@pytest.fixture
def queue(stack: ExitStack, home: Path) -> Passing:
    return queueing(stack, home / "place", SERVICE_S, "exponential")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "sync.yaml").write_text(SCENARIO)
    return make_shell(tmp_path)


def test_the_capacity_of_a_mount_that_queues_is_what_theory_says(
    queue: Passing, shell: Shell
) -> None:
    limits = ("--threshold", f"sync.p95 < {LIMIT_S * 1e3:.0f}ms")
    done = shell.run(
        *("capacity", "sync.yaml", "--target", f"queue={queue.mount}", *limits),
        *("--precision", "10%", "--budget", "200s", "--json"),
    )
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)["targets"]
    capacity = found["capacity"]
    assert capacity["estimate"] == pytest.approx(CAPACITY, rel=0.1)
    assert found["slowest_op"] == "fsync"
    assert list(queue.mount.iterdir()) == []
