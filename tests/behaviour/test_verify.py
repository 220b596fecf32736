"""Data that are written and never read are read back at the end, and judged."""

import json
import signal
import time
from typing import Any

from tests.behaviour.shell import Shell, Until
from tests.behaviour.test_run_signals import is_measuring

SMALL = "sequences.receive.0.write.size=300kB"
WRITES = """name: writes
users: {count: 2, think_time: 1ms}
duration: 60s
datasets: {work: {directory: true}}
mix: {write: 1}
transactions:
  write:
    - open: {in: work, name: "f-{user}-{seq}", flags: [wronly, create, excl]}
    - write: {size: 16KiB}
    - close
"""


def judged(document: Any) -> str:  # noqa: ANN401 - JSON
    """Return how the data were judged."""
    (found,) = (
        each for each in document["verdict"]["judgements"] if each["threshold"] == "data as written"
    )
    return str(found["outcome"])


def test_uploads_write_and_never_read_and_what_they_wrote_is_judged(shell: Shell) -> None:
    mount = shell.target()
    # By one user: a rename is uncertain while another name of its group (1 of 65,536) changes.
    alone = ("-u", "1", "--set", SMALL, "--target", mount)
    words = ("uploads", "--verify", "-t", "1s", *alone, "--json")
    done = shell.run("run", *words)
    document = json.loads(done.out)
    last = document["verification"]["last"]
    assert judged(document) == "pass"
    assert done.code in {0, 4}, done.err  # 4: a busy machine was the bottleneck
    assert document["verification"]["reads"] == 0
    assert 0 < last["files"] <= 40
    assert last["verified_bytes"] >= last["files"] * 299_000
    assert (last["unclear_files"], last["left_files"], last["failed_files"]) == (0, 0, 0)
    assert last["took_s"] > 0
    assert list(mount.iterdir()) == []
    (folder,) = (shell.home / "replayer-runs").iterdir()
    told = " ".join(shell.run("report", folder).out.split())
    assert f"read back at the end: {last['files']} files, " in told
    assert "wrong blocks: none" in told


def test_one_ctrl_c_ends_the_run_and_what_was_written_until_then_is_read_back(
    shell: Shell, until: Until
) -> None:
    (shell.home / "writes.yaml").write_text(WRITES)
    words = ("writes.yaml", "--verify", "-t", "60s", "-s", "5", "--target", shell.target())
    process = shell.start("run", *words, "--json")
    until(lambda: is_measuring(shell.home))
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - begun < 5 + 5
    assert process.returncode == 4, err
    last = json.loads(out)["verification"]["last"]
    assert last["files"] > 0
    assert last["wrong_blocks"] == {"stale": 0, "torn": 0, "swapped": 0, "lost": 0}
