"""Replays: how fast, how punctual, how small, and how close to the commands that were captured.

Each is measured through the command line, as a user would see it; figures come from run folders.
"""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.untar import make_tarball

FAST_EVENTS_S = 2_000_000
DRIFT_LIMIT = 0.001
ERROR_LIMIT = 0.05
RSS_LIMIT_BYTES = 500 << 20
FRONT_PAGE = "wordpress/front-warm"
REPLAYED = {0, 4}
"""Exit codes of a replay that was done: 4 says that one user without pauses keeps a CPU busy."""
LONG_BLOCK_EVENTS = 10_000
IN_A_ROW = 3
PAIRS = 2
"""Commands and replays take turns of some seconds: this machine does not stay as fast as it was."""
_EMPTY_COPY = "rm -rf copy && mkdir copy"
NEW_SOURCE = f"{_EMPTY_COPY} && cp -a source new && rm -rf source && mv new source"
NEW_TARBALL = f"{_EMPTY_COPY} && cp source.tar new && mv new source.tar"
"""As replays find them: what a copy in memory takes depends by a sixth on which pages it gets."""
SETTLED_INDEX = "git -C kernel status"
COPIED = "rm -rf copy && cp -a source copy"
MODULES = 300
NEW_MODULES = (
    f"rm -rf modules && mkdir modules && for one in $(seq {MODULES}); do "
    "echo \"def f$one(value): return [value + $one, 'x' * $one]\" > modules/m$one.py; done"
)
KERNEL_FILES = 15_000
"""Of the kernel's tree: git is done with WordPress in 5 ms, and takes 7 if its CPU has slept."""
SETTINGS = ("user.name=bench", "user.email=bench@localhost", "gc.auto=0")


@dataclass(frozen=True)
class Speed:
    """A trace replayed without pauses by one user.

    Attributes:
        events_s: Events a second of the time that transactions took, median of the turns.
        in_call_ns: Of an event's time so much passes in its call, two looks at the clock among it.
        events: Events of the trace.
    """

    events_s: float
    in_call_ns: float
    events: int

    @property
    def own_ns(self) -> float:
        """What the player takes for an event."""
        return 1e9 / self.events_s - self.in_call_ns

    def passes(self) -> bool:
        return self.events_s >= FAST_EVENTS_S

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def front_page(arena: Path, scratch: Path, turns: int, loops: int = 40) -> Speed:
    """Replay the warm front page again and again."""
    rates = []
    in_calls = []
    events = 0
    for turn in range(turns):
        run = replay(
            Place(arena, scratch / f"front-{turn}"), FRONT_PAGE, "--pace=asap", f"--loops={loops}"
        )
        transaction = only_transaction(run)
        events = run["replay"]["results"]["events"] // transaction["latency"]["count"]
        rates.append(events / (transaction["service"]["mean_ns"] / 1e9))
        calls = [op["time"] for op in transaction["ops"]]
        made = sum(call["count"] for call in calls)
        in_calls.append(sum(call["count"] * call["mean_ns"] for call in calls) / made)
    return Speed(median(rates), median(in_calls), events)


@dataclass(frozen=True)
class Place:
    """Where a replay works and where it writes its run folder."""

    target: Path
    output: Path


def replay(
    place: Place, trace: str, *words: str, codes: Collection[int] = REPLAYED
) -> dict[str, Any]:
    """Run ``replayer replay`` on one target and return its run.json.

    Raises:
        RuntimeError: It failed: its exit code is none of those.
    """
    command = [sys.executable, "-m", "replayer", "replay", trace, "--quiet", *words]
    command += [f"--target={place.target}", f"--output={place.output}"]
    os.sync()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in codes:
        message = f"replay of {trace} failed: {done.stderr}{done.stdout[-2000:]}"
        raise RuntimeError(message)
    found: dict[str, Any] = json.loads((place.output / "run.json").read_text())
    return found


def only_transaction(run: dict[str, Any]) -> dict[str, Any]:
    """Return the one transaction of the one target."""
    (target,) = run["summary"]["targets"]
    (transaction,) = target["overall"]["transactions"]
    found: dict[str, Any] = transaction
    return found


@dataclass(frozen=True)
class Likeness:
    """A captured command beside its replays, on one file system.

    Attributes:
        command: What was captured.
        untraced_s: Its time without a recorder, median.
        closed_s: Time of its replay with its pauses, median.
        asap_s: The same without pauses: what the file system alone takes.
        errors: How far the replay with pauses is off in each turn, lowest first.
        events: Events of the trace.
    """

    command: str
    untraced_s: float
    closed_s: float
    asap_s: float
    errors: tuple[float, ...]
    events: int

    @property
    def error(self) -> float:
        """How far the replay with pauses is off, median of the turns."""
        return median(self.errors)

    def passes(self) -> bool:
        return abs(self.error) <= ERROR_LIMIT

    def document(self) -> dict[str, object]:
        return {**asdict(self), "error": self.error, "passes": self.passes()}


@dataclass(frozen=True)
class Tool:
    """A command to capture: its words below the folder, and what a shell does there before it."""

    name: str
    words: Sequence[str]
    preparation: str

    def make_ready(self, stage: Path) -> None:
        """Bring the folder into the state that the command is to find."""
        subprocess.run(["sh", "-c", self.preparation], cwd=stage, check=True, capture_output=True)


def likenesses(arena: Path, scratch: Path, turns: int) -> Iterator[Likeness]:
    """Record six commands in the arena, and replay them there; they come as they are measured."""
    stage = arena / "stage"
    stage.mkdir()
    _make_repository(stage, "source", "wordpress-6.1.9", None)
    _make_repository(stage, "kernel", "linux-4.7.2-like", KERNEL_FILES)
    tools = [
        Tool("tar xf", ("tar", "-xf", "source.tar", "-C", "copy"), NEW_TARBALL),
        Tool("cp -a", ("cp", "-a", "source", "copy/"), NEW_SOURCE),
        Tool("rsync -a", ("rsync", "-a", "source/", "copy/"), NEW_SOURCE),
        Tool("git status", ("git", "-C", "kernel", "status", "--short"), SETTLED_INDEX),
        Tool("rm -rf", ("rm", "-rf", "copy"), COPIED),
        Tool("compileall", (sys.executable, "-m", "compileall", "-q", "modules"), NEW_MODULES),
    ]
    try:
        there = [tool for tool in tools if shutil.which(tool.words[0])]
        for tool in there:
            yield likeness(tool, stage, scratch, turns)
    finally:
        shutil.rmtree(stage)


def _make_repository(stage: Path, name: str, manifest: str, files: int | None) -> None:
    """Make a tarball, a folder with what is in it, and a repository there with that committed."""
    folder = stage / name
    folder.mkdir()
    make_tarball(stage / f"{name}.tar", manifest, files)
    subprocess.run(["tar", "-xf", f"../{name}.tar"], cwd=folder, check=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    for words in (("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run(["git", *settings, *words], cwd=folder, check=True)


def likeness(tool: Tool, stage: Path, scratch: Path, turns: int) -> Likeness:
    """Record a command, time it, and time replays of that, in turns: no pause is fitted.

    Each turn has a recording of its own: one alone would be of a moment in which the machine was
    fast or slow.
    """
    turns_of: dict[str, list[float]] = {"untraced": [], "closed": [], "asap": []}
    events = 0
    for turn in range(turns):
        trace = scratch / f"{tool.name.replace(' ', '-')}-{turn}"
        tool.make_ready(stage)
        capture = [sys.executable, "-m", "replayer", "capture", "--recorder=ebpf", "-o", str(trace)]
        capture += ["--root", str(stage), "--", *tool.words]
        subprocess.run(capture, cwd=stage, check=True, capture_output=True)
        times: dict[str, list[float]] = {
            "untraced": as_repeated(tool, stage),
            "closed": [],
            "asap": [],
        }
        for number, pace in enumerate(("closed", "asap") * PAIRS):
            output = scratch / f"{trace.name}-{number}"
            words = (f"--pace={pace}", f"--rounds={IN_A_ROW}", "--cache=warm")
            run = replay(Place(stage.parent, output), str(trace), *words)
            shutil.rmtree(output)
            times[pace].append(only_transaction(run)["latency"]["p50_ns"] / 1e9)
            events = run["replay"]["results"]["events"] // IN_A_ROW
            times["untraced"] += as_repeated(tool, stage)
        for name, found in times.items():
            turns_of[name].append(median(found))
        shutil.rmtree(trace)
    pairs = zip(turns_of["closed"], turns_of["untraced"], strict=True)
    errors = tuple(sorted(replayed_s / alone_s - 1 for replayed_s, alone_s in pairs))
    untraced_s, closed_s, asap_s = (median(found) for found in turns_of.values())
    return Likeness(tool.name, untraced_s, closed_s, asap_s, errors, events)


def as_repeated(tool: Tool, stage: Path) -> list[float]:
    """Run a command some times, one after the other: a short one takes longer the first time."""
    found = []
    for _ in range(IN_A_ROW):
        tool.make_ready(stage)
        found.append(untraced(tool.words, stage))
    return found


def untraced(words: Sequence[str], stage: Path) -> float:
    """Run a command and return its wall time in seconds."""
    program = shutil.which(words[0]) or words[0]
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    with contextlib.chdir(stage):
        os.sync()
        begin = time.monotonic()
        process = os.posix_spawn(program, list(words), os.environ, file_actions=nowhere)
        _, status = os.waitpid(process, 0)
        took_s = time.monotonic() - begin
    if status:
        message = f"{words[0]} failed: {status}"
        raise RuntimeError(message)
    return took_s


@dataclass(frozen=True)
class Punctuality:
    """A trace stretched to a length and replayed at its recorded times.

    Attributes:
        length_s: How long it should have taken.
        late_p50_ns: Lateness of events.
        late_p99_ns: The same.
        drift: How much longer the whole took, as a share of its length.
    """

    length_s: float
    late_p50_ns: int
    late_p99_ns: int
    drift: float

    def passes(self) -> bool:
        return abs(self.drift) <= DRIFT_LIMIT

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def punctuality(arena: Path, scratch: Path, length_s: float = 60.0) -> Punctuality:
    """Replay the warm front page at its recorded times, slowed down so that it takes so long."""
    shown = subprocess.run(
        [sys.executable, "-m", "replayer", "show", FRONT_PAGE, "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    span_s = json.loads(shown.stdout)["counts"]["span_ns"] / 1e9
    speed = round(span_s / length_s, 4)
    run = replay(Place(arena, scratch / "timed"), FRONT_PAGE, "--pace=timed", f"--speed={speed}")
    lag = only_transaction(run)["event_lag"]
    (target,) = run["replay"]["results"]["targets"]
    drift = target["drift_ns"] / 1e9 / (span_s / speed)
    return Punctuality(span_s / speed, lag["p50_ns"], lag["p99_ns"], drift)


@dataclass(frozen=True)
class Long:
    """A trace too long for memory.

    Attributes:
        events: Events that were replayed.
        rss_bytes: The most memory that the process had.
        events_s: Events a second.
    """

    events: int
    rss_bytes: int
    events_s: float

    def passes(self) -> bool:
        return self.rss_bytes <= RSS_LIMIT_BYTES

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def long_trace(arena: Path, scratch: Path, events: int) -> Long:
    """Make a trace of so many events by repetition, and replay it without pauses."""
    log, trace = arena / "long.iolog", arena / "long-trace"
    write_long_log(log, events)
    importing = [sys.executable, "-m", "replayer", "import", str(log), "-o", str(trace)]
    subprocess.run([*importing, "--root", "/data"], check=True, capture_output=True)
    log.unlink()
    run = replay(Place(arena, scratch / "long"), str(trace), "--pace=asap")
    # Of the largest child so far, the import among them: the replay had no more.
    rss_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    shutil.rmtree(trace)
    transaction = only_transaction(run)
    played = run["replay"]["results"]["events"]
    return Long(played, rss_bytes, played / (transaction["service"]["mean_ns"] / 1e9))


def write_long_log(log: Path, events: int) -> None:
    """Write a log of fio's kind in which one file is opened, read and written in turns, closed."""
    name = "/data/file"
    lines = [f"{name} open"]
    for at in range((LONG_BLOCK_EVENTS - 2) // 2):
        lines += [f"{name} read {at % 64 * 4096} 4096", f"{name} write {at % 64 * 4096} 4096"]
    lines.append(f"{name} close")
    block = ("\n".join(lines) + "\n").encode()
    with log.open("wb") as file:
        file.write(f"fio version 2 iolog\n{name} add\n".encode())
        for _ in range(events // LONG_BLOCK_EVENTS):
            file.write(block)
