"""The same I/O by fio and by the engine: the same calls, on the same files, from the same memory.

A pattern is a job of fio's and its twin, a scenario. What both do alike is proved with strace
(``tests/behaviour/test_twins.py``); what is left to differ is how each of them takes the time.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from replayer import _native as engine
from replayer.plan.compile import compile_plan
from replayer.plan.document import canonical_bytes
from replayer.scenario.loading import parse_scenario
from tests.bench.contenders import start_all

__all__ = [
    "PATTERNS",
    "Cost",
    "Native",
    "Pattern",
    "Reading",
    "computing",
    "fio_words",
    "own_costs",
    "run_fio",
]

SECONDS = 1.0
"""Of a measurement (chosen): hundreds of I/Os, and short enough to fall between disturbances."""
RAMP_S = 0.25
GRACE_NS = 2_000_000_000
THREADS = 2
PASSES = 8
"""Through a file that is written from its begin to its end, in a transaction (chosen)."""
IDLE_S = 0.2
IDLE_TURNS = 5  # chosen: one of them is undisturbed
POOL_MARGIN = 4096  # of plan format 1: a plan's pool is so much larger than its largest write


@dataclass(frozen=True)
class Pattern:
    """A pattern as fio's options and as a step of a transaction.

    Attributes:
        name: As the shipped job is called where there is one.
        op: The op whose times are compared, as the engine calls it.
        users: Users, or threads of fio.
        size_bytes: Of each one's file.
        block_bytes: Of an I/O.
        options: Of fio.
        flags: With which the twin opens its file.
        step: One I/O of the twin.
        times: How many make a transaction, or a pass through a file that is written from its begin
            to its end. A transaction that is under way when the warm-up ends is measured whole, so
            it is short.
        has_device: Whether its files lie on one, and not in memory.
    """

    name: str
    op: str
    users: int
    size_bytes: int
    block_bytes: int
    options: Mapping[str, str]
    flags: str
    step: str
    times: int
    has_device: bool = True

    @property
    def way(self) -> str:
        """What fio calls the op."""
        return "read" if "read" in self.op else "write"

    @property
    def threads(self) -> bool:
        """Whether fio's jobs are threads, as the engine's users.

        Each process of fio is a session of its own, and where sessions share the CPUs
        (sched_autogroup) sixteen of them get sixteen shares of a busy machine, and one that waits
        for a device gets another one beside the kernel's threads (4 % of a write of a MiB). One
        that only copies stays a process: in threads the C library makes a call 20 ns longer
        (measured), as it can be cancelled there.
        """
        waits = self.has_device and not self.options.keys().isdisjoint({"sync", "direct"})
        return self.users > 1 or waits


_KIB = 1 << 10
_MIB = 1 << 20
_READ = "pread: {{size: {}B, offset: random, align: {}B}}"
_WRITE = "pwrite: {{size: {}B, offset: random, align: {}B}}"


def _writes(name: str, users: int, size: int, block: int, **options: str) -> Pattern:
    """Return a file written from its begin to its end, again and again: write(2)."""
    flags = "rdwr, sync" if "sync" in options else "rdwr"
    step = f"write: {{size: {block}B, block: {block}B}}"
    fixed = {"ioengine": "sync", "rw": "write"}
    return Pattern(
        name, "write", users, size, block, {**fixed, **options}, flags, step, size // block
    )


def _reads(name: str, block: int, times: int, **options: str) -> Pattern:
    """Return a file read at random places: pread(2)."""
    flags = "rdonly, direct" if "direct" in options else "rdonly"
    fixed = {"ioengine": "psync", "rw": "randread", "norandommap": "1"}
    step = _READ.format(block, block)
    return Pattern(
        name, "pread_random", 1, 64 * _MIB, block, {**fixed, **options}, flags, step, times
    )


def _mixed(name: str, users: int) -> Pattern:
    block = 4 * _KIB
    step = (
        f"choose: [{{weight: 70, steps: [{_READ.format(block, block)}]}}, "
        f"{{weight: 30, steps: [{_WRITE.format(block, block)}]}}]"
    )
    options = {"ioengine": "psync", "rw": "randrw", "rwmixread": "70", "norandommap": "1"}
    return Pattern(name, "pread_random", users, 8 * _MIB, block, options, "rdwr", step, 256)


PATTERNS = (
    _writes("write-4k-sync", 1, _MIB, 4 * _KIB, sync="1"),
    _writes("write-1m-sync", 1, 8 * _MIB, _MIB, sync="1"),
    _writes("write-1m-buffered", 1, 8 * _MIB, _MIB),
    _writes("upload", 4, 8 * _MIB, _MIB),
    _reads("read-1m-cached", _MIB, 32),
    _reads("latency-read-4k", 4 * _KIB, 64, direct="1"),
    _reads("read-4k-cached", 4 * _KIB, 1024),
    _mixed("cache", 16),
)


@dataclass(frozen=True)
class Cost:
    """What a tool takes for an I/O that does nothing.

    Attributes:
        within_ns: Of it, what the tool counts as the I/O's time: median.
        between_ns: From the end of an I/O to the begin of the next.
    """

    within_ns: float
    between_ns: float


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


class Native:
    """The engine with a pattern's twin, laid out once.

    Args:
        pattern: The pattern.
        folder: Where its files are.
        record: Where runs are recorded.
        computing_ns: How long the twin computes after each I/O, as the program does that it is a
            twin of.
    """

    def __init__(self, pattern: Pattern, folder: Path, record: Path, computing_ns: int = 0) -> None:
        self._pattern = pattern
        self._record = record
        body = compile_plan(parse_scenario(_scenario(pattern, computing_ns), pattern.name)).body
        if pattern.options["rw"] != "randread":
            # A thread of fio writes all from one buffer, which then lies in its CPU's cache: the
            # twin's users have as many together as run at once.
            buffers = min(pattern.users, len(os.sched_getaffinity(0)))
            body = {**body, "pool_bytes": buffers * pattern.block_bytes + POOL_MARGIN}
        self._document = canonical_bytes(body)
        self._sandbox = engine.Sandbox.create(str(folder), f"bench-{pattern.name}", "{}")

    def __enter__(self) -> Self:
        self._ready = engine.Plan(self._document)
        self._sandbox.lay_out(self._ready, THREADS).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.remove(THREADS).result()

    def files(self) -> list[Path]:
        """Return the files, one of each user."""
        found = (path for path in Path(self._sandbox.path).rglob("*") if path.is_file())
        return sorted(path for path in found if path.stat().st_size == self._pattern.size_bytes)

    def measure(
        self, seconds: float = SECONDS, *, null: bool = False, cpu: int | None = None
    ) -> Reading:
        """Let the users work, and read what they recorded.

        Args:
            seconds: How long.
            null: Make no calls, for the engine's own cost.
            cpu: Where the users' threads are to stay; the engine's others go where they like.
        """
        with tempfile.TemporaryDirectory(dir=self._record) as record:
            machine = engine.Engine(self._ready, [[self._sandbox]], record=record, null=null)
            users = 1 if null else self._pattern.users
            start_all(machine, users)
            if cpu is not None:
                _keep_users_on(cpu)
            machine.begin_segment(0, 0, round(RAMP_S * 1e9))
            begin = time.monotonic_ns() + round(RAMP_S * 1e9)
            time.sleep(RAMP_S + seconds)
            machine.end_segment(GRACE_NS)
            elapsed_ns = time.monotonic_ns() - begin
            found = _histograms(machine)
            machine.close()
        return _read_native(found, self._pattern.op, (users, elapsed_ns))


def _keep_users_on(cpu: int) -> None:
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().startswith("user"):
            os.sched_setaffinity(int(task.name), {cpu})


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
    found: Mapping[str, engine.Histogram], op: str, users_and_ns: tuple[int, int]
) -> Reading:
    users, elapsed_ns = users_and_ns
    total = sum(each.count for each in found.values())
    busy_ns = sum(each.mean * each.count for each in found.values())
    compared = found[op]
    return Reading(
        iops=total / elapsed_ns * 1e9,
        mean_ns=compared.mean,
        p50_ns=compared.percentile(50),
        p99_ns=compared.percentile(99),
        between_ns=(users * elapsed_ns - busy_ns) / total,
    )


def run_fio(
    pattern: Pattern, files: list[Path], seconds: float = SECONDS, cpu: int | None = None
) -> Reading:
    """Run fio for as long on the twin's own files, under names that it makes of its jobs'."""
    with tempfile.TemporaryDirectory(dir=files[0].parent) as folder:
        for number, file in enumerate(files):
            os.link(file, Path(folder, f"{pattern.name}.{number}.0"))
        words = [*fio_words(pattern, seconds), *_on(cpu), f"--directory={folder}"]
        return _read_fio(_printed(words), pattern, pattern.users)


def _on(cpu: int | None) -> list[str]:
    return [] if cpu is None else [f"--cpus_allowed={cpu}"]


def _printed(words: list[str]) -> Any:  # noqa: ANN401 - JSON
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return json.loads(printed[printed.index("{") :])["jobs"][0]


def _read_fio(job: Any, pattern: Pattern, users: int) -> Reading:  # noqa: ANN401 - JSON
    """Read its times of calls (clat): ``lat`` begins before the I/O is given away."""
    ways = [job[way] for way in ("read", "write") if job[way]["total_ios"]]
    iops = sum(way["iops"] for way in ways)
    busy = sum(way["iops"] * way["clat_ns"]["mean"] for way in ways)
    times = job[pattern.way]["clat_ns"]
    return Reading(
        iops=iops,
        mean_ns=times["mean"],
        p50_ns=times["percentile"]["50.000000"],
        p99_ns=times["percentile"]["99.000000"],
        between_ns=(users * 1e9 - busy) / iops,
    )


def fio_words(pattern: Pattern, seconds: float) -> Iterator[str]:
    """Yield the command but for its folder."""
    yield from ("fio", f"--name={pattern.name}", "--output-format=json", "--eta=never")
    yield from ("--group_reporting", "--time_based", "--overwrite=1", "--allow_file_create=0")
    yield from (f"--runtime={round(seconds * 1000)}ms", f"--ramp_time={round(RAMP_S * 1000)}ms")
    yield from (f"--numjobs={pattern.users}", f"--size={pattern.size_bytes}")
    yield f"--bs={pattern.block_bytes}"
    if pattern.threads:
        yield "--thread"
    # Nothing beside the I/O: no advice to the kernel, no fresh bytes in a block, no other thread.
    yield from ("--fallocate=none", "--invalidate=0", "--fadvise_hint=0", "--disk_util=0")
    yield "--scramble_buffers=0"
    # Its buffer begins a few bytes behind a page: a CPU may copy a MiB there at a quarter of its
    # speed.
    yield "--iomem_align=4096"
    # Of the times only that of the call is compared: it does not take the others.
    yield from ("--disable_lat=1", "--disable_slat=1")
    yield from (f"--{name}={value}" for name, value in pattern.options.items())


def own_costs(
    pattern: Pattern, folder: Path, record: Path, cpu: int | None = None
) -> tuple[Cost, Cost]:
    """Measure what the engine and fio take for I/Os that do nothing, on a CPU or on any."""
    words = [*fio_words(pattern, IDLE_S), *_on(cpu), "--ioengine=null", "--numjobs=1"]
    fio = _cost([_read_fio(_printed(words), pattern, 1) for _ in range(IDLE_TURNS)])
    with Native(pattern, folder, record) as native:
        costs = [native.measure(IDLE_S, null=True, cpu=cpu) for _ in range(IDLE_TURNS)]
    return _cost(costs), fio


def computing(pattern: Pattern, folder: Path, record: Path, cpu: int | None = None) -> int:
    """Find how long the twin has to compute after each I/O to be as busy as fio in between.

    Looked for with one user, who waits for no CPU, and on real I/Os: what a tool does between them
    takes longer than between those that do nothing, as the kernel has used the caches meanwhile.

    Returns:
        Nanoseconds.
    """
    alone = replace(pattern, users=1)
    with Native(alone, folder, record) as native:
        found = (run_fio(alone, native.files(), IDLE_S, cpu) for _ in range(IDLE_TURNS))
        wanted_ns = min(each.between_ns for each in found)

    def between(computing_ns: int) -> float:
        with Native(alone, folder, record, computing_ns) as native:
            return min(native.measure(IDLE_S, cpu=cpu).between_ns for _ in range(IDLE_TURNS))

    computing_ns = max(round(wanted_ns - between(0)), 0)
    if computing_ns:  # to compute for a while takes longer than that: looking at the clock
        more_ns = between(computing_ns) - wanted_ns
        computing_ns = max(computing_ns - round(more_ns), 1)
    return computing_ns


def _cost(found: list[Reading]) -> Cost:
    """Return the least of each: other work on the machine only ever makes it more."""
    return Cost(
        within_ns=min(each.p50_ns for each in found),
        between_ns=min(each.between_ns for each in found),
    )


def _scenario(pattern: Pattern, computing_ns: int) -> str:
    think = f", think: {computing_ns}ns" if computing_ns else ""
    steps = f"repeat: {{times: {pattern.times}, steps: [{pattern.step}{think}]}}"
    if pattern.options["ioengine"] == "sync":  # that goes back to the begin of the open file
        steps = f"repeat: {{times: {PASSES}, steps: [lseek: {{offset: 0B}}, {steps}]}}"
    return f"""\
name: twin
about: What fio does with {pattern.name}.
users: {{count: {pattern.users}}}
duration: 60s
datasets:
  files: {{files: {pattern.users}, sizes: {pattern.size_bytes}B}}
mix: {{io: 1}}
transactions:
  io:
    - open: {{from: files, pick: own, flags: [{pattern.flags}]}}
    - {steps}
    - close
"""
