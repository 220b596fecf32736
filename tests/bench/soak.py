"""A long run at full load, looked at from outside: memory, descriptors and threads must stay flat.

    python -m tests.bench.soak [--seconds 600] [--users 64] [--target FOLDER]

Reads /proc of the process that works, twice a second; the first fifth of the time is not judged,
since caches and histograms grow to their size then.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tests.processes import children_of

EVERY_S = 0.5
SETTLES = 0.2  # of the time, before anything is judged (chosen)
GROWTH_LIMIT = (
    0.02  # of the memory in the judged time, by the slope (chosen: below what pages differ)
)
STOP_LIMIT_S = 60
SCENARIO = """
name: soak
about: Users without a pause who create, write, read, look at, rename and remove files.
users: {{count: {users}}}
duration: {seconds}s
datasets:
  files: {{files: 2000, sizes: 4KiB, per_directory: 100}}
  work: {{directory: true, per: user}}
mix: {{look: 6, save: 2, list: 1}}
transactions:
  look:
    - stat: {{from: files, pick: {{hot: 80/20}}}}
    - open
    - read: {{size: 64KiB, until: end}}
    - close
  save:
    - open: {{in: work, name: "new", flags: [create, wronly, trunc], as: new}}
    - write: {{file: new, size: 8KiB}}
    - close: new
    - rename: {{path: new, to: {{in: work, name: "there-{{seq}}", as: there}}}}
    - unlink: there
  list:
    - open: {{in: work, name: ".", flags: [directory]}}
    - list
    - close
"""


@dataclass(frozen=True)
class Look:
    """The process at one moment."""

    at_s: float
    rss_bytes: int
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Soak:
    """What a soak showed.

    Attributes:
        seconds: Judged time.
        rss_bytes: Mean.
        growth: By the slope of a straight line through all looks, as a share of the mean.
        descriptors: Fewest and most.
        threads: Fewest and most.
    """

    seconds: float
    rss_bytes: int
    growth: float
    descriptors: tuple[int, int]
    threads: tuple[int, int]

    def passes(self) -> bool:
        flat = self.descriptors[1] - self.descriptors[0] <= 2 * self.threads[1]
        return self.growth <= GROWTH_LIMIT and flat and self.threads[0] == self.threads[1]


def soak(target: Path, users: int, seconds: int) -> Soak:
    """Run it, and look at it until it measures no more."""
    scenario = target / "soak.yaml"
    scenario.write_text(SCENARIO.format(users=users, seconds=seconds))
    process = subprocess.Popen(
        [sys.executable, "-m", "replayer", "run", str(scenario), f"--target={target}", "--quiet"],
        cwd=target,
        stdout=subprocess.DEVNULL,
    )
    looks = list(_looks(process, seconds))
    process.wait(STOP_LIMIT_S)
    return _judged([look for look in looks if look.at_s > SETTLES * seconds])


def _looks(process: "subprocess.Popen[bytes]", seconds: int) -> Iterator[Look]:
    worker = _child(process)
    begun = _wait_for_threads(worker)
    while (at_s := time.monotonic() - begun) < seconds - 1:
        yield _look(worker, at_s)
        time.sleep(EVERY_S)


def _child(process: "subprocess.Popen[bytes]") -> int:
    """The process that works, which the one that was begun keeps."""
    while not (found := children_of(process.pid)):
        time.sleep(EVERY_S)
    return found[0]


def _wait_for_threads(worker: int) -> float:
    """Wait until the users are there."""
    before = 0
    while True:
        now = _look(worker, 0).threads
        if now == before and now > 8:
            return time.monotonic()
        before = now
        time.sleep(EVERY_S)


def _look(worker: int, at_s: float) -> Look:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{worker}/status").read_text().splitlines()
    )
    return Look(
        at_s=at_s,
        rss_bytes=int(status["VmRSS"].split()[0]) * 1024,
        descriptors=len(list(Path(f"/proc/{worker}/fd").iterdir())),
        threads=int(status["Threads"]),
    )


def _judged(looks: list[Look]) -> Soak:
    times = np.array([look.at_s for look in looks])
    sizes = np.array([look.rss_bytes for look in looks], dtype=float)
    slope = float(np.polyfit(times, sizes, 1)[0])
    span = float(times[-1] - times[0])
    descriptors = [look.descriptors for look in looks]
    threads = [look.threads for look in looks]
    return Soak(
        seconds=round(span, 1),
        rss_bytes=int(sizes.mean()),
        growth=slope * span / float(sizes.mean()),
        descriptors=(min(descriptors), max(descriptors)),
        threads=(min(threads), max(threads)),
    )


def main() -> None:
    """Soak, print what was seen, and fail if something grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--target", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.target) as folder:
        found = soak(Path(folder), options.users, options.seconds)
    print(json.dumps({**asdict(found), "passes": found.passes()}, indent=1))
    sys.exit(0 if found.passes() else 1)


if __name__ == "__main__":
    main()
