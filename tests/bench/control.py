"""What the control plane costs: a run's hub, a master beside workers, a poll of the page."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from replayer.measure.record import load_run
from tests.behaviour.page import serve
from tests.behaviour.shell import make_shell

LIMIT = 0.05
"""Of one core, at 50,000 file calls a second (promised)."""
POLL_LIMIT_S = 0.05
POLLS = 60
MEASURED_S = 10.0
PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
USERS, STATS = 50, 10

STEADY = (
    f"""\
name: steady
about: Fifty thousand calls a second.
users: {{count: {USERS}, think_time: 10ms}}
duration: 5m
datasets:
  files: {{files: 100, sizes: 1KiB}}
mix: {{look: 1}}
transactions:
  look:
"""
    + "    - stat: {from: files, pick: uniform}\n" * STATS
)

NAMES = ("browse", "search", "basket", "order", "account", "help")
WIDE = f"""\
name: wide
about: Six transactions of five ops each.
users: {{count: 6, think_time: 20ms}}
duration: 5m
datasets:
  files: {{files: 100, sizes: 1KiB}}
mix: {{{", ".join(f"{name}: 1" for name in NAMES)}}}
transactions:
""" + "".join(
    f"""\
  {name}:
    - stat: {{from: files, pick: uniform}}
    - open: {{from: files, pick: uniform}}
    - fstat
    - read: {{size: 4KiB}}
    - close
"""
    for name in NAMES
)


@dataclass(frozen=True)
class Control:
    """The control plane of a run.

    Attributes:
        ops_s: Calls a second.
        hub: CPU time of the process' first thread, the hub, as a share of one core.
        whole: The same of all threads; of a master that is all there is.
    """

    ops_s: float
    hub: float
    whole: float

    def passes(self) -> bool:
        return 0 < self.hub * 50_000 / max(self.ops_s, 1.0) <= LIMIT

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


@dataclass(frozen=True)
class Poll:
    """What the page's script asks for each two seconds.

    Attributes:
        rows: Rows of the File operations tab.
        median_s: From request to answer.
        longest_s: The longest of them.
    """

    rows: int
    median_s: float
    longest_s: float

    def passes(self) -> bool:
        return self.median_s <= POLL_LIMIT_S

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def control(folder: Path, *mode: str) -> Control:
    """Measure a run's own process while it goes on."""
    home = folder / "-".join(("control", *mode)).replace("--", "")
    home.mkdir()
    (home / "steady.yaml").write_text(STEADY)
    (home / "mount").mkdir()
    with _running(home, *mode) as pid:
        begin, before = time.monotonic(), _cpu_s(pid)
        time.sleep(MEASURED_S)
        after, seconds = _cpu_s(pid), time.monotonic() - begin
    hub, whole = ((late - early) / seconds for late, early in zip(after, before, strict=True))
    record = load_run(home / "out")
    calls = sum(
        histogram.count
        for key, histogram in record.log.histograms.items()
        if key.segment.phase == "measured" and key.op == "stat"
    )
    measured_s = sum(
        span.end_s - span.start_s
        for segment, span in record.spans.items()
        if segment.phase == "measured"
    )
    return Control(calls / measured_s, hub, whole)


def poll(folder: Path) -> Poll:
    """Measure the page's polls while a run of thirty op rows goes on."""
    home = folder / "poll"
    home.mkdir()
    shell = make_shell(home)
    (home / "wide.yaml").write_text(WIDE)
    shell.target()
    with serve(shell, "wide.yaml", "--target", "mount=mount", "-o", "kept") as server:
        server.start(scenario="wide", run_time="60s", user_count="6")
        time.sleep(8.0)
        times = []
        for _ in range(POLLS):
            begin = time.monotonic()
            found = json.loads(server.get("stats/requests"))
            times.append(time.monotonic() - begin)
            time.sleep(0.05)
    (table,) = found["extended_stats"]
    return Poll(len(table["data"]), median(times), max(times))


@contextmanager
def _running(home: Path, *mode: str) -> Iterator[int]:
    words = ("run", "steady.yaml", "--target", "here=mount", "-o", "out", "--quiet", *mode)
    process = subprocess.Popen(
        [sys.executable, "-m", "replayer", *words], cwd=home, stdout=subprocess.DEVNULL
    )
    timeline = home / "out" / "timeline.csv"
    while not timeline.exists() or len(timeline.read_text().splitlines()) < 8:
        if process.poll() is not None:
            message = "the run has ended before it was measured"
            raise RuntimeError(message)
        time.sleep(0.2)
    try:
        # Not the supervisor, which we have started: the process that leads.
        yield int(json.loads((home / "out" / "run.json").read_text())["process"]["pid"])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)


def _cpu_s(pid: int) -> tuple[float, float]:
    """Return CPU seconds of a process' first thread and of all threads (proc_pid_stat(5))."""
    found = [_of(PROC / str(pid) / "task" / str(pid) / "stat"), _of(PROC / str(pid) / "stat")]
    return found[0], found[1]


def _of(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S
