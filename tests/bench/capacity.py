"""``python -m tests.bench.capacity``: searches whose right answers are known.

``queue``: one server with exponential service in a file system in user space. Times of calls are
exponential, too (M/M/1), so the load is known at which their p95 is the limit. What the file system
needs by itself is measured before each repeat, at that load, and is no part of the limit. Needs
root; a repeat takes about 9 minutes. ``client``: a folder in memory, which a client on one CPU
cannot bring to its end: any capacity would be the client's own. A repeat takes about 2 minutes.
``mounts``, ``nfs``: real ones, of which nobody knows: repeats should agree. Need root; a repeat
takes a quarter of an hour.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from shlex import join
from typing import Any

from tests.mounts.guest import MOUNTS, boot
from tests.mounts.local import ext4
from tests.mounts.passing import passing
from tests.mounts.sshfs import sshfs
from tests.mounts.test_capacity import SCENARIO, capacity_of_queue

MEMORY = Path("/dev/shm")  # noqa: S108 - a memory file system, and folders of its own there
READING = """
name: reading
about: Small files that are read.
users: {count: 64}
duration: 10s
datasets:
  files: {files: 1000, sizes: 4KiB}
mix: {look: 1}
transactions:
  look: [open: {from: files, pick: uniform}, read: {size: 4KiB}, close]
"""
SAVING = """
name: saving
about: Small files that are written.
users: {count: 64}
duration: 10s
datasets:
  files: {files: 256, sizes: 4KiB}
mix: {save: 1}
transactions:
  save: [open: {from: files, pick: own, flags: [wronly, trunc]}, write: {size: 4KiB}, fsync, close]
"""
SERVICE_S, LIMIT_S = 0.01, 0.1
"""Chosen: the file system itself, written in Python, needs 1 ms for a transaction."""
BUDGET_S = 720
GUEST_S = 2 * BUDGET_S  # chosen: a guest boots, and is slow


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capacity", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    with ExitStack() as stack:
        KINDS[options.kind](stack, options.repeats)


def queue(stack: ExitStack, repeats: int) -> None:
    """Search a queue, and hold what was found against theory."""
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (home / "sync.yaml").write_text(SCENARIO)
    place = passing(stack, home / "place")
    limit = f"sync.p95 < {LIMIT_S * 1e3:.0f}ms"
    near = covered = 0
    for number in range(repeats):
        place.suffer()
        own_s = _own_s(home / f"own-{number}", home / "sync.yaml", place.mount)
        truth = capacity_of_queue(SERVICE_S, LIMIT_S - own_s)
        place.suffer(fsync={"queue": {"servers": 1, "mean_s": SERVICE_S, "law": "exponential"}})
        found = _search(home / f"{number}", home / "sync.yaml", place.mount, limit)["capacity"]
        print(f"theory {truth:.1f}/s: {found['estimate'] / truth - 1:+.1%}", flush=True)
        near += abs(found["estimate"] / truth - 1) <= 0.05
        covered += found["low"] <= truth <= found["high"]
    print(f"{near} of {repeats} within 5 %, {covered} intervals cover it")


def _own_s(output: Path, scenario: Path, place: Path) -> float:
    """Return how long a transaction takes on the file system while there is no queue."""
    load = capacity_of_queue(SERVICE_S, LIMIT_S)
    words = [f"--target=here={place}", f"--set=arrivals={{rate: {load:.0f}/s}}"]
    words += ["-t", "10s", "--quiet", "--json", "-o", str(output)]
    command = [sys.executable, "-m", "replayer", "run", str(scenario), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    (target,) = json.loads(done.stdout)["summary"]["targets"]
    return float(target["overall"]["transactions"][0]["latency"]["p50_ns"]) / 1e9


def client(stack: ExitStack, repeats: int) -> None:
    """Search from a client on one CPU, and count the answers that are no more than its own."""
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
    (home / "reading.yaml").write_text(READING)
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    found = [
        _search(home / f"{number}", home / "reading.yaml", place, "look.p95 < 20ms")
        for number in range(repeats)
    ]
    false = sum(each["capacity"] is not None for each in found)
    told = sum(each["client_ran_out"] for each in found)
    print(f"{false} of {repeats} told a capacity, {told} that the client ran out")


def mounts(stack: ExitStack, repeats: int) -> None:
    """Search two mounts of this machine."""
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    places = {"ext4": ext4(stack, home / "ext4")[0], "sshfs": sshfs(stack, home / "sshfs")[0]}
    for number in range(repeats):
        command = _on_mounts(home, number, places)
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        _tell(done.stdout)


def nfs(stack: ExitStack, repeats: int) -> None:
    """Search two exports of kernel NFS, in a guest with both ends."""
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    places = {name: Path(paths[0]) for name, paths in MOUNTS.items()}
    for number in range(repeats):
        command, folder = _on_mounts(home, number, places), home / f"guest-{number}"
        folder.mkdir()
        words = ("sh", "-c", f"{join(command)} > {folder}/said; true")
        boot(folder).run(*words, limit_s=GUEST_S)
        _tell((folder / "said").read_text())


def _on_mounts(home: Path, number: int, places: Mapping[str, Path]) -> list[str]:
    (home / "saving.yaml").write_text(SAVING)
    command = _command(home / f"{number}", home / "saving.yaml", places, "save.p95 < 50ms")
    return [*command, "--budget", f"{BUDGET_S}s"]


def _tell(said: str) -> None:
    print("\n".join(json.loads(said)["answers"]), flush=True)


KINDS: dict[str, Callable[[ExitStack, int], None]] = {
    "queue": queue,
    "client": client,
    "mounts": mounts,
    "nfs": nfs,
}


def _search(output: Path, scenario: Path, place: Path, limit: str) -> dict[str, Any]:
    command = _command(output, scenario, {"here": place}, limit)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    document = json.loads(done.stdout)
    (target,) = document["targets"]
    spent_s = sum(point["seconds"] for point in target["trials"])
    print(f"{document['answers'][0]}: {len(target['trials'])} trials, {spent_s:.0f} s", flush=True)
    found: dict[str, Any] = target
    return found


def _command(output: Path, scenario: Path, places: Mapping[str, Path], limit: str) -> list[str]:
    words = [word for name, place in places.items() for word in ("--target", f"{name}={place}")]
    words += ["--threshold", limit, "--quiet", "--json", "-o", str(output)]
    return [sys.executable, "-m", "replayer", "capacity", str(scenario), *words]


if __name__ == "__main__":
    main()
