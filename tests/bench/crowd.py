"""Ten thousand users with think time in one process: their coming, their weight, their going.

Twice: the engine alone, and ``replayer run`` as a whole, with Locust starting and stopping them.
``python -m tests.bench.crowd FOLDER USERS`` measures the engine in a process of its own, so that
its memory is its own.
"""

import csv
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from replayer import _native as engine
from tests.bench import plans
from tests.bench.contenders import start_all

RAMP_LIMIT_S = 10.0
RSS_LIMIT_BYTES = 2 << 30
STOP_LIMIT_S = 5.0
THINK_NS = (500_000_000, 1_500_000_000)
RUN_S = 5.0
SPAWN_S = 4
SCENARIO = """
name: crowd
about: Many users who look at a file and then think for a while.
users: {{count: {users}, ramp_up: {ramp_s}s, think_time: {{uniform: [0.5s, 1.5s]}}}}
duration: 15s
datasets:
  files: {{files: 100, sizes: 4KiB, names: "f{{n}}"}}
mix: {{look: 1}}
transactions:
  look:
    - stat: {{from: files, pick: uniform}}
"""


@dataclass(frozen=True)
class Crowd:
    """What a crowd of users took."""

    users: int
    ramp_s: float
    rss_bytes: int
    stop_s: float
    transactions: int

    def passes(self) -> bool:
        in_time = self.ramp_s <= RAMP_LIMIT_S and self.stop_s <= STOP_LIMIT_S
        return in_time and self.rss_bytes <= RSS_LIMIT_BYTES

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def engine_crowd(arena: Path, users: int) -> Crowd:
    """Measure the engine alone, in a process of its own."""
    words = [sys.executable, "-m", "tests.bench.crowd", str(arena), str(users)]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return Crowd(**json.loads(printed))


def whole_crowd(arena: Path, users: int) -> Crowd:
    """Measure ``replayer run`` from its start to its end."""
    scenario, folder = arena / "crowd.yaml", arena / "crowd-run"
    scenario.write_text(SCENARIO.format(users=users, ramp_s=SPAWN_S))
    words = [sys.executable, "-m", "replayer", "run", str(scenario), "--quiet"]
    process = subprocess.Popen(
        [*words, f"--target={arena}", f"--output={folder}"], stdout=subprocess.DEVNULL
    )
    _, process.returncode, usage = os.wait4(process.pid, 0)
    ended = time.time_ns() / 1e9
    begun = _begun(folder / "histograms.hlog")
    rows = _rows(folder / "timeline.csv")
    full = min(float(row["end_s"]) for row in rows if int(row["users"]) == users)
    last = max(float(row["end_s"]) for row in rows)
    done = sum(int(row["count"]) for row in rows if row["op"] == "transaction")
    first = min(float(row["start_s"]) for row in rows)
    return Crowd(users, full - first, usage.ru_maxrss * 1024, ended - begun - last, done)


def _begun(log: Path) -> float:
    found = re.search(r"BaseTime: ([0-9.]+)", log.read_text())
    if found is None:
        message = f"{log} has no BaseTime"
        raise RuntimeError(message)
    return float(found[1])


def _rows(timeline: Path) -> list[dict[str, str]]:
    with timeline.open(newline="") as file:
        return list(csv.DictReader(file))


def _measure(arena: Path, users: int) -> Crowd:
    sandbox = engine.Sandbox.create(str(arena), "crowd", "{}")
    plan = plans.thinking_plan(users, THINK_NS)
    sandbox.lay_out(plan, 2).result()
    machine = engine.Engine(plan, [[sandbox]])
    machine.begin_segment(0, 0, 0)
    begin = time.monotonic()
    start_all(machine, users)
    ramped = time.monotonic()
    time.sleep(RUN_S)
    rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    stopping = time.monotonic()
    machine.end_segment(1_000_000_000)
    rows = machine.totals()
    machine.close()
    stop_s = time.monotonic() - stopping
    done = sum(row.histogram.count for row in rows if row.op == "transaction")
    sandbox.remove(2).result()
    return Crowd(users, ramped - begin, rss_bytes, stop_s, done)


if __name__ == "__main__":
    found = _measure(Path(sys.argv[1]), int(sys.argv[2]))
    json.dump(asdict(found), sys.stdout)
