"""What is lost beside a neighbour on a mount that queues, which is known, a disk, and a hang."""

import json
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.shell import Shell, make_shell
from tests.behaviour.test_neighbour import STORM, SYNC
from tests.mounts.passing import Passing, queueing

pytestmark = pytest.mark.mounts

SERVICE_S = 0.01
NEIGHBOURS = 3
SCENARIO = """
name: {name}
about: Calls that wait for their turn.
users: {{count: {users}}}
duration: 10s
datasets:
  files: {{files: 4, sizes: 4KiB}}
mix: {{{name}: 1}}
transactions:
  {name}: [open: {{from: files, pick: own, flags: [wronly]}}, {call}, close]
"""


@pytest.fixture
def queue(stack: ExitStack, home: Path) -> Passing:
    return queueing(stack, home / "place", SERVICE_S, "constant")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for name, users, call in (
        ("sync", 1, "fsync"),
        ("storm", NEIGHBOURS, "fsync"),
        ("look", NEIGHBOURS, "fstat"),
    ):
        text = SCENARIO.format(name=name, users=users, call=call)
        (tmp_path / f"{name}.yaml").write_text(text)
    return make_shell(tmp_path)


def measure(shell: Shell, queue: Passing, neighbour: str) -> Any:  # noqa: ANN401 - JSON
    done = shell.run(
        *("run", "sync.yaml", "--target", f"queue={queue.mount}", "--neighbour", neighbour),
        *("-t", "12s", "--rounds", "3", "--json", "-o", "out"),
    )
    assert done.code == 0, done.err
    assert list(queue.mount.iterdir()) == []
    return json.loads(done.out)


def medians_s(document: Any) -> list[float]:  # noqa: ANN401 - JSON
    """Return the median latency of each setting."""
    targets = document["summary"]["targets"]
    found = (target["overall"]["transactions"][0]["latency"] for target in targets)
    return [latency["p50_ns"] / 1e9 for latency in found]


def test_who_shares_a_queue_waits_for_all_who_are_in_it(queue: Passing, shell: Shell) -> None:
    document = measure(shell, queue, "storm.yaml")
    alone_s, beside_s = medians_s(document)
    # All of a closed loop are always there: each comes again when all have been served.
    assert beside_s == pytest.approx((1 + NEIGHBOURS) * SERVICE_S, rel=0.1)
    (answer,) = document["answer"]
    ratio = answer.removeprefix("sync p50 is ").split(" ")[0]
    assert float(ratio) == pytest.approx(beside_s / alone_s, rel=0.01)
    assert "beside storm" in answer


def test_a_neighbour_that_is_not_in_the_queue_costs_nothing(queue: Passing, shell: Shell) -> None:
    # Not by its sentence: of equal settings 1 in 20 is told to differ.
    alone_s, beside_s = medians_s(measure(shell, queue, "look.yaml@20/s"))
    assert beside_s == pytest.approx(alone_s, rel=0.1)


def test_much_that_is_made_durable_slows_who_needs_the_same_disk(tmp_path: Path) -> None:
    # Here, where no other test needs the disk at the same time.
    shell = make_shell(tmp_path)
    for name, text in (("sync", SYNC), ("storm", STORM)):
        (shell.home / f"{name}.yaml").write_text(text)
    words = ("--target", f"here={shell.target()}", "--neighbour", "storm.yaml", "--json")
    done = shell.run("run", "sync.yaml", *words, "-t", "6s", "--rounds", "2")
    alone_s, beside_s = medians_s(json.loads(done.out))
    assert beside_s > 2 * alone_s


def test_a_mount_that_hangs_under_both_is_left_in_bounded_time(
    queue: Passing, shell: Shell
) -> None:
    words = ("--target", f"queue={queue.mount}", "--neighbour", "storm.yaml", "-s", "2")
    process = shell.start("run", "sync.yaml", *words, "-t", "60s", "--rounds", "2", "-o", "out")
    begun = shell.home / "out/neighbour/1-round-1/histograms.hlog"
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    queue.suffer(fsync={"delay_s": 600})
    time.sleep(2)
    begin = time.monotonic()
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    process.communicate(timeout=60)
    assert time.monotonic() - begin < 40
    assert process.returncode in {3, 4}
