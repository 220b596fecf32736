"""The engine beside fio on the same patterns: do both measure the same file system?

Each pattern is a job of fio's and its twin, a scenario. They take turns on the same folder, so that
what disturbs one disturbs the other, and ratios are those of pairs. What lies between two I/Os
is the tool's own: it is shown, since it is what makes rates differ where times agree.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Self

from replayer import engine
from replayer.plan import compile_plan
from replayer.scenario import parse_scenario

SECONDS = 1.0
"""Of a measurement (chosen): hundreds of I/Os, and short enough to fall between disturbances."""
RAMP_S = 0.25
LIMIT = 0.05
"""What is promised: within 5 %."""
GRACE_NS = 2_000_000_000
POLL_S = 0.01
THREADS = 2


@dataclass(frozen=True)
class Pattern:
    """A pattern as fio's options and as the steps of a transaction.

    Attributes:
        name: As the shipped job is called where there is one.
        op: The op whose times are compared, as the engine calls it.
        users: Users, or processes of fio.
        size: Of each one's file.
        options: Of fio.
        flags: With which the twin opens its file.
        steps: What the twin does with it.
    """

    name: str
    op: str
    users: int
    size: str
    options: Mapping[str, str]
    flags: str
    steps: str

    @property
    def way(self) -> str:
        """What fio calls the op."""
        return "read" if "read" in self.op else "write"


def _reads(block: str) -> str:
    return f"repeat: {{times: 256, steps: [{{pread: {{size: {block}, offset: random}}}}]}}"


def _writes(size: str, block: str) -> str:
    return f"write: {{size: {size}, block: {block}}}"


_MIXED = (
    "repeat: {times: 256, steps: [choose: ["
    "{weight: 70, steps: [pread: {size: 4KiB, offset: random}]}, "
    "{weight: 30, steps: [pwrite: {size: 4KiB, offset: random}]}]]}"
)
_RANDOM = {"bs": "4k", "norandommap": "1"}

PATTERNS = (
    Pattern("write-4k-sync", "write", 1, "1MiB", {"rw": "write", "bs": "4k", "sync": "1"},
            "wronly, sync", _writes("1MiB", "4KiB")),
    Pattern("write-1m-sync", "write", 1, "16MiB", {"rw": "write", "bs": "1M", "sync": "1"},
            "wronly, sync", _writes("16MiB", "1MiB")),
    Pattern("write-1m-buffered", "write", 1, "50MiB", {"rw": "write", "bs": "1M"},
            "wronly", _writes("50MiB", "1MiB")),
    Pattern("upload", "write", 4, "50MiB", {"rw": "write", "bs": "1M"},
            "wronly", _writes("50MiB", "1MiB")),
    Pattern("read-1m-cached", "pread_random", 1, "64MiB",
            {"rw": "randread", "bs": "1M", "norandommap": "1"}, "rdonly", _reads("1MiB")),
    Pattern("latency-read-4k", "pread_random", 1, "64MiB",
            {**_RANDOM, "rw": "randread", "direct": "1"}, "rdonly, direct", _reads("4KiB")),
    Pattern("read-4k-cached", "pread_random", 1, "64MiB",
            {**_RANDOM, "rw": "randread"}, "rdonly", _reads("4KiB")),
    Pattern("cache", "pread_random", 16, "8MiB",
            {**_RANDOM, "rw": "randrw", "rwmixread": "70"}, "rdwr", _MIXED),
)  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """What one of them measured.

    Attributes:
        iops: I/Os a second, of all ops and users.
        mean_ns: Mean time of the compared op.
        p50_ns: Its median.
        p99_ns: Its 99th percentile.
        between_ns: From the end of an I/O to the begin of the next: the tool's own, and waiting
            for a CPU.
    """

    iops: float
    mean_ns: float
    p50_ns: float
    p99_ns: float
    between_ns: float


@dataclass(frozen=True)
class Agreement:
    """One pattern on one file system: medians of turns, and the ratios engine / fio.

    Other work on the machine only ever makes a turn slower, so what the two say of the file system
    is compared by the best turn of each; pairs show how much they were disturbed.

    Attributes:
        arena: File system.
        pattern: Its name.
        turns: How many pairs there were.
        native: The engine's medians.
        fio: fio's medians.
        best_iops: Ratio of the highest rates.
        best_p50: Ratio of the lowest medians.
        best_p99: Ratio of the lowest 99th percentiles.
        iops: Ratio in pairs: first quartile, median, third quartile.
        p99: The same of 99th percentiles.
        noise: p99 of the same tool from one turn to another: half the interquartile range of the
            ratios of neighbouring turns, both tools together.
    """

    arena: str
    pattern: str
    turns: int
    native: Reading
    fio: Reading
    best_iops: float
    best_p50: float
    best_p99: float
    iops: tuple[float, float, float]
    p99: tuple[float, float, float]
    noise: float

    def passes(self) -> bool:
        return not self._apart()

    def row(self) -> str:
        where = f"{self.arena:<6} {self.pattern:<18}"
        rates = f"{self.native.iops:>9,.0f} {self.fio.iops:>9,.0f}"
        times = f"{self.native.p99_ns / 1e3:>9,.1f} {self.fio.p99_ns / 1e3:>9,.1f}"
        best = f"{self.best_iops:>6.3f} {self.best_p50:>6.3f} {self.best_p99:>6.3f}"
        pairs = (
            f"{low:.2f}-{middle:.2f}-{high:.2f}" for low, middle, high in (self.iops, self.p99)
        )
        own = f"{self.native.between_ns:>8,.0f} {self.fio.between_ns:>8,.0f}"
        apart = self._apart()
        verdict = f"{' and '.join(apart)} apart" if apart else "within 5 %"
        shown = "  ".join(f"{text:<16}" for text in pairs)
        return f"{where}{rates} {times}  {best}   {shown} {self.noise:>6.1%} {own}  {verdict}"

    def _apart(self) -> list[str]:
        ratios = {"IOPS": self.best_iops, "p99": self.best_p99}
        return [name for name, ratio in ratios.items() if abs(ratio - 1) > LIMIT]

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


HEADER = (
    "                            median IOPS        median p99, µs      best turns            "
    "pairs: IOPS       p99               noise    between I/Os, ns\n"
    "where  pattern              engine       fio    engine       fio    IOPS    p50    p99"
    "                                      of p99   engine      fio"
)


def agreements(arena: str, folder: Path, record: Path, turns: int) -> Iterator[Agreement]:
    """Measure every pattern in turns, and yield what came out of each."""
    for pattern in PATTERNS:
        place = folder / pattern.name
        place.mkdir()
        with Native(pattern, place, record) as native:
            pairs = [_pair(native, pattern, place, turn) for turn in range(turns)]
        shutil.rmtree(place)
        yield _agreement(arena, pattern, pairs)


def _pair(
    native: "Native", pattern: Pattern, place: Path, turn: int
) -> tuple["Reading", "Reading"]:
    """Let both measure, each of them first in every second turn."""
    if turn % 2:
        theirs = measure_fio(pattern, place)
        return native.measure(), theirs
    return native.measure(), measure_fio(pattern, place)


class Native:
    """The engine with a pattern's twin, laid out once."""

    def __init__(self, pattern: Pattern, folder: Path, record: Path) -> None:
        self._pattern = pattern
        self._record = record
        self._plan = compile_plan(parse_scenario(_scenario(pattern), pattern.name))
        self._sandbox = engine.Sandbox.create(str(folder), f"bench-{pattern.name}", "{}")

    def __enter__(self) -> Self:
        self._ready = engine.Plan(self._plan.document())
        self._sandbox.lay_out(self._ready, THREADS).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.remove(THREADS).result()

    def measure(self) -> Reading:
        """Let the users work, and read what they recorded."""
        with tempfile.TemporaryDirectory(dir=self._record) as record:
            machine = engine.Engine(self._ready, [[self._sandbox]], record=record)
            for user in range(self._pattern.users):
                machine.start_user(user)
            while machine.running_users() < self._pattern.users:
                time.sleep(POLL_S)
            machine.begin_segment(0, 0, round(RAMP_S * 1e9))
            begin = time.monotonic_ns() + round(RAMP_S * 1e9)
            time.sleep(RAMP_S + SECONDS)
            machine.end_segment(GRACE_NS)
            elapsed_ns = time.monotonic_ns() - begin
            found = _histograms(machine)
            machine.close()
        return _read_native(found, self._pattern, elapsed_ns)


def _histograms(machine: engine.Engine) -> dict[str, engine.Histogram]:
    found: dict[str, engine.Histogram] = {}
    for row in machine.totals():
        if not row.expected:
            message = f"{row.op} ended with {row.outcome}"
            raise RuntimeError(message)
        timed = row.op.startswith(("pread", "pwrite", "write")) and row.outcome == "ok"
        if timed and row.phase == "measured":
            found.setdefault(row.op, engine.Histogram()).add(row.histogram)
    return found


def _read_native(
    found: Mapping[str, engine.Histogram], pattern: Pattern, elapsed_ns: int
) -> Reading:
    total = sum(each.count for each in found.values())
    busy_ns = sum(each.mean * each.count for each in found.values())
    compared = found[pattern.op]
    return Reading(
        iops=total / elapsed_ns * 1e9,
        mean_ns=compared.mean,
        p50_ns=compared.percentile(50),
        p99_ns=compared.percentile(99),
        between_ns=(elapsed_ns * pattern.users - busy_ns) / total,
    )


def measure_fio(pattern: Pattern, folder: Path) -> Reading:
    """Run fio for as long, with processes of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        words = [*_words(pattern), f"--directory={place}"]
        printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    job = json.loads(printed[printed.index("{") :])["jobs"][0]
    ways = [job[way] for way in ("read", "write") if job[way]["total_ios"]]
    iops = sum(way["iops"] for way in ways)
    busy = sum(way["iops"] * way["lat_ns"]["mean"] for way in ways)
    times = job[pattern.way]["lat_ns"]
    return Reading(
        iops=iops,
        mean_ns=times["mean"],
        p50_ns=times["percentile"]["50.000000"],
        p99_ns=times["percentile"]["99.000000"],
        between_ns=(pattern.users * 1e9 - busy) / iops,
    )


def _words(pattern: Pattern) -> Iterator[str]:
    yield from ("fio", f"--name={pattern.name}", "--ioengine=psync", "--output-format=json")
    yield from ("--group_reporting", "--lat_percentiles=1", "--time_based", "--overwrite=1")
    yield from (f"--runtime={SECONDS:g}s", f"--ramp_time={round(RAMP_S * 1000)}ms")
    yield from (f"--numjobs={pattern.users}", f"--size={pattern.size.replace('iB', '')}")
    # Threads, as the engine's: each process of fio is a session of its own, and where sessions
    # share the CPUs (sched_autogroup) sixteen of them get sixteen shares of a busy machine.
    yield "--thread"
    # Its twin's file is in the page cache: it was just laid out.
    yield from ("--fallocate=none", "--invalidate=0", "--pre_read=0")
    yield from (f"--{name}={value}" for name, value in pattern.options.items())


def _scenario(pattern: Pattern) -> str:
    return f"""\
name: twin
about: What fio does with {pattern.name}.
users: {{count: {pattern.users}}}
duration: 60s
datasets:
  files: {{files: {pattern.users}, sizes: {pattern.size}}}
mix: {{io: 1}}
transactions:
  io:
    - open: {{from: files, pick: own, flags: [{pattern.flags}]}}
    - {pattern.steps}
    - close
"""


def _agreement(arena: str, pattern: Pattern, pairs: Sequence[tuple[Reading, Reading]]) -> Agreement:
    native, fio = zip(*pairs, strict=True)
    return Agreement(
        arena=arena,
        pattern=pattern.name,
        turns=len(pairs),
        native=_median(native),
        fio=_median(fio),
        best_iops=max(each.iops for each in native) / max(each.iops for each in fio),
        best_p50=min(each.p50_ns for each in native) / min(each.p50_ns for each in fio),
        best_p99=min(each.p99_ns for each in native) / min(each.p99_ns for each in fio),
        iops=_ratio([mine.iops / theirs.iops for mine, theirs in pairs]),
        p99=_ratio([mine.p99_ns / theirs.p99_ns for mine, theirs in pairs]),
        noise=_noise(native, fio),
    )


def _median(readings: Sequence[Reading]) -> Reading:
    rows = [asdict(reading) for reading in readings]
    return Reading(**{name: median(row[name] for row in rows) for name in rows[0]})


def _ratio(ratios: Sequence[float]) -> tuple[float, float, float]:
    low, _, high = quantiles(ratios, n=4)
    return low, median(ratios), high


def _noise(*series: Sequence[Reading]) -> float:
    """Return how far p99 of one and the same tool goes apart between neighbouring turns."""
    ratios = [
        after.p99_ns / before.p99_ns for readings in series for before, after in pairwise(readings)
    ]
    low, _, high = quantiles(ratios, n=4)
    return (high - low) / 2
