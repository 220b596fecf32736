"""Ten thousand users with think time in one process: their coming, their weight, their going.

``python -m tests.bench.crowd FOLDER USERS`` measures in a process of its own, so that its memory is
its own.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from replayer import engine
from tests.bench import plans

RAMP_LIMIT_S = 10.0
RSS_LIMIT_BYTES = 2 << 30
STOP_LIMIT_S = 5.0
THINK_NS = (500_000_000, 1_500_000_000)
RUN_S = 5.0


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


def crowd(arena: Path, users: int) -> Crowd:
    """Measure in a process of its own."""
    words = [sys.executable, "-m", "tests.bench.crowd", str(arena), str(users)]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return Crowd(**json.loads(printed))


def _measure(arena: Path, users: int) -> Crowd:
    sandbox = engine.Sandbox.create(str(arena), "crowd", "{}")
    plan = plans.thinking_plan(users, THINK_NS)
    sandbox.lay_out(plan, 2).result()
    machine = engine.Engine(plan, [[sandbox]])
    machine.begin_segment(0, 0, 0)
    begin = time.monotonic()
    for user in range(users):
        machine.start_user(user)
    while machine.running_users() < users:
        time.sleep(0.01)
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
