"""``python -m tests.bench.capacity``: capacities of a mount that queues, beside what theory says.

One server with exponential service in a file system in user space: times of calls are exponential,
too (M/M/1), so the load is known at which their p95 is the limit. Needs root. A repeat takes 2 to 8
minutes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.mounts.passing import passing
from tests.mounts.test_capacity import CAPACITY, LIMIT_S, SCENARIO, SERVICE_S


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capacity", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (home / "sync.yaml").write_text(SCENARIO)
        place = passing(stack, home / "place")
        queue = {"servers": 1, "mean_s": SERVICE_S, "law": "exponential"}
        place.suffer(fsync={"queue": queue})
        found = [_search(home, place.mount, number) for number in range(repeats)]
    near = sum(abs(each["estimate"] / CAPACITY - 1) <= 0.05 for each in found)
    covered = sum(each["low"] <= CAPACITY <= each["high"] for each in found)
    print(f"theory {CAPACITY:.1f}/s: {near} of {repeats} within 5 %, {covered} intervals cover it")


def _search(home: Path, mount: Path, number: int) -> dict[str, Any]:
    words = [
        "--threshold",
        f"sync.p95 < {LIMIT_S * 1e3:.0f}ms",
        "--json",
        "-o",
        str(home / f"{number}"),
    ]
    command = [sys.executable, "-m", "replayer", "capacity", str(home / "sync.yaml"), "--quiet"]
    command += ["--target", f"queue={mount}", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    (target,) = json.loads(done.stdout)["targets"]
    capacity: dict[str, Any] = target["capacity"]
    spent_s = sum(point["seconds"] for point in target["trials"])
    print(
        f"{capacity['estimate']:.1f}/s ({capacity['low']:.1f} to {capacity['high']:.1f}), "
        f"{len(target['trials'])} trials, {spent_s:.0f} s",
        flush=True,
    )
    return capacity


if __name__ == "__main__":
    main()
