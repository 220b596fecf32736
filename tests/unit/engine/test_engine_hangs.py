"""A file system that hangs is reported while it does, and ends a segment in bounded time."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replayer._native import Sandbox
from tests.unit.engine.drafts import Drafts, Make, Until


def call(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small ext4 of its own, which can be frozen."""
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    image.touch()
    os.truncate(image, 64 << 20)
    if not call("mkfs.ext4", "-q", "-F", str(image)):
        pytest.skip("no mkfs.ext4 here")
    if not call("mount", "-o", "loop", str(image), str(mount)):
        pytest.skip("mounting a file system needs root and a loop device")
    yield mount
    call("fsfreeze", "-u", str(mount))
    # Threads that were stuck let go of it soon after; lazily, so that it goes away when they do.
    assert call("umount", "-l", str(mount))


def test_users_in_a_hung_file_system_are_given_up_on(
    disk: Path, drafts: Drafts, make: Make, until: Until, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    record.mkdir()
    sandbox = Sandbox.create(str(disk), "test", "{}")
    Path(sandbox.path, "files").mkdir()
    steps = [
        drafts.name(0, {"user": True}, "-", {"seq": True}),
        drafts.call("mkdir", path=0, mode=0o755),
        {"do": "think", "time": drafts.const(5_000_000)},
    ]
    plan = drafts.plan(steps, stop={"duration_ns": None, "transactions": None})
    engine = make(plan, sandbox, record=str(record), stuck_after_ns=100_000_000)
    for user in range(3):
        engine.start_user(user)
    engine.begin_segment(0, 0, 0)
    time.sleep(0.05)
    if not call("fsfreeze", "-f", str(disk)):
        pytest.skip("no fsfreeze here")
    until(lambda: len(engine.stuck()) == 3)
    begun = time.monotonic()
    given_up = engine.end_segment(10_000_000)
    assert time.monotonic() - begun < 15  # a frozen disk holds them for ever
    assert sorted(stuck.user for stuck in given_up) == [0, 1, 2]
    cut = {row.op: row.histogram for row in engine.totals() if row.outcome == "cancelled"}
    assert {op: histogram.count for op, histogram in cut.items()} == {
        "mkdir": 3,
        "transaction": 3,
        "transaction.service": 3,
        "transaction.lag": 3,
    }, "what hangs is recorded with the age that it had"
    ages_ns = [stuck.age_ns for stuck in given_up]
    assert cut["mkdir"].max == pytest.approx(max(ages_ns), rel=0.01)
    assert cut["transaction"].max >= cut["mkdir"].max * 0.999
    assert {stuck.op for stuck in given_up} == {"mkdir"}
    assert (engine.running_users(), engine.busy_users()) == (0, 0)
    assert sorted(engine.drain_finished()) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="user 1 was abandoned"):
        engine.start_user(1)
    begun = time.monotonic()
    assert engine.close() == []
    assert time.monotonic() - begun < 1.9  # nobody is waited for again, which would take 2 s
    events = (record / "events.jsonl").read_text()
    assert events.count('"stall"') == events.count('"abandoned"') == 3
