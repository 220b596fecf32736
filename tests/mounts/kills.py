"""Kills with SIGKILL at random moments, and what they leave.

    python -m tests.mounts.kills [--kills 100] [--seed 1] [--mount tmpfs] [--measured 0]

What is killed are runs (alone and on two processes), replays, baselines of fio, the doctor's probe
and the look whether a target has O_DIRECT; either the process that was begun or the child of it
that works. After each: records are read, ``replayer clean`` removes the rest, and a tree beside the
target and one on it have the same checksums, owners, times and links as before.

One kill of ten comes before anything is made, six come while the work is measured, and the rest at
any moment after it has made something.
"""

import argparse
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path

from replayer.cli import main as main_of_replayer
from tests.behaviour.shell import Done, Process
from tests.mounts.fleet import MAKERS
from tests.mounts.scene import Scene, make_scene
from tests.mounts.tree import Tree, differences, fingerprint

__all__ = ["WORKS", "Killed", "Range", "kill_once", "make_range"]

LIMIT_S = 60
GONE_S = 30  # how long after a kill its processes may be seen (chosen)
EARLY = 0.1  # of all kills come before anything is made (chosen)
AIMED = 0.6  # of all kills come while something is measured (chosen: most is at stake there)
REFUSED = 2
DIRECT = """\
from pathlib import Path
import sys
from replayer.fio.places import without_direct
from replayer.fio.jobs import load_jobs
for _ in range(100):
    without_direct(load_jobs(["rand-read-4k"]), [sys.argv[1]])
"""
MANY = ("tiny.yaml", "--set", "files.files=2000")

WORKS: Mapping[str, tuple[str, ...]] = {
    "run": ("-m", "replayer", "run", *MANY, "-t", "2s", "--target"),
    "run on two processes": (
        *("-m", "replayer", "run", *MANY, "-t", "2s", "--processes", "2", "--target"),
    ),
    "replay": (
        *("-m", "replayer", "replay", "wordpress/plugin-delete", "--pace", "asap"),
        *("-t", "2s", "--target"),
    ),
    "baseline": (
        *("-m", "replayer", "baseline", "write-1m-buffered", "--size", "4MiB"),
        *("--runtime", "4s", "--target"),
    ),
    "probe": ("-m", "replayer", "doctor"),
    "look for O_DIRECT": ("-c", DIRECT),
}
"""What is begun; the target comes behind it."""
BRIEF_S = {"look for O_DIRECT": 0.02}
"""What is there for a moment only, again and again (chosen)."""


@dataclass(frozen=True)
class Killed:
    """What a kill left.

    Attributes:
        work: What was killed.
        after_s: How long after it was begun, had made something, or began to be measured.
        whom: ``supervisor`` or ``child``.
        phase: How far it was, as its records and its folder say; ``measured``: while its users, or
            fio's jobs, worked and were measured.
        records: Run folders that were read.
        ops: Calls in them.
        removed: Folders that ``clean`` removed.
        wrong: What is not as it should be.
    """

    work: str
    after_s: float
    whom: str
    phase: str
    records: int
    ops: int
    removed: int
    wrong: tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """How long the parts of a work take, in seconds.

    Attributes:
        early: Until it makes something.
        late: From then to its end.
        measured: While it is measured; 0 if it never is.
    """

    early: float
    late: float
    measured: float


@dataclass
class Range:
    """A target, a tree beside it that must not change, and how long each work takes."""

    scene: Scene
    sentinel: Path
    before: Tree
    spans: dict[str, Span] = field(default_factory=dict)

    def span(self, work: str) -> Span:
        """Return how long the parts of a work take, as found out once."""
        if work not in self.spans:
            begun = time.monotonic()
            process = self.begin(work)
            self.wait_for_work(process)
            makes = time.monotonic()
            self.wait_until_measured(process)
            measures = time.monotonic()
            while process.poll() is None and self.is_measured():
                time.sleep(0.01)
            measured = time.monotonic()
            process.communicate(timeout=LIMIT_S)
            ended = time.monotonic()
            self.spans[work] = Span(makes - begun, ended - makes, measured - measures)
            self.forget()
        return self.spans[work]

    def wait_until_measured(self, process: Process) -> None:
        """Wait until it is measured, or has ended."""
        while process.poll() is None and not self.is_measured():
            time.sleep(0.002)

    def is_measured(self) -> bool:
        """Whether users work and are measured, or fio has handed results over and goes on."""
        if not self.records():
            return False
        first, *others = self.records()
        if (first / "fio").exists():
            lines = _text(first / "timeline.csv").count("\n")
            return lines > 1 and any(self.left()) and _status(first) == "running"
        for folder in (first, *others, *(part for each in others for part in each.glob("*"))):
            phases = re.findall(r'"phase": *"([^"]*)"', _text(folder / "events.jsonl"))
            if phases and phases[-1] == "measured":
                return True
        return False

    def wait_for_work(self, process: Process) -> None:
        """Wait until it has made something, or has ended."""
        while process.poll() is None and not self.records() and not self.left():
            time.sleep(0.002)

    def begin(self, work: str) -> Process:
        """Begin a work, its output in a pipe that is read at the end."""
        return self.scene.shell.start(self.scene.mount, program=WORKS[work])

    def records(self) -> list[Path]:
        """Return the run folders."""
        return sorted(self.scene.shell.home.glob("replayer-runs/*"))

    def left(self) -> list[Path]:
        """Return the folders on the target."""
        return sorted(self.scene.mount.glob("replayer-*"))

    def forget(self) -> None:
        """Remove the records: the tests' own files only."""
        for folder in self.records():
            for path in sorted(folder.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            folder.rmdir()


def make_range(home: Path, mount: Path) -> Range:
    """Put a tree on a mount, and one beside it."""
    scene = make_scene(home / "shell", mount)
    sentinel = home / "sentinel"
    for name in ("files", "work"):
        (sentinel / name).mkdir(parents=True)
        for number in range(20):
            (sentinel / name / f"file{number}").write_text(f"{name} {number}\n" * 200)
    (sentinel / "link").symlink_to("files")
    return Range(scene, sentinel, fingerprint(sentinel))


def kill_once(place: Range, work: str, seed: int) -> Killed:
    """Begin a work, kill it at a random moment, and look at what it leaves."""
    draw = random.Random(f"{work} {seed}")  # noqa: S311 - a moment, no secret
    span, kind = place.span(work), draw.random()
    whom = draw.choice(("supervisor", "child"))
    process = place.begin(work)
    if kind < EARLY:
        after_s = span.early * draw.random()
    elif kind < EARLY + AIMED and span.measured:
        place.wait_until_measured(process)
        after_s = span.measured * draw.random()
    else:
        place.wait_for_work(process)
        # Squared: most is done soon after the first thing was made, and ending takes long.
        after_s = BRIEF_S.get(work, span.late) * draw.random() ** 2
    with suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    is_measured = process.poll() is None and place.is_measured()
    with suppress(ProcessLookupError):
        os.kill(_victim(process.pid, whom), signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    wrong = [] if _gone(place) else ["it goes on after it was killed"]
    phase = "measured" if is_measured else _phase(place)
    ops = _read_records(place, wrong)
    records = len(place.records())
    removed = _clean(place, wrong)
    wrong += [f"beside: {each}" for each in differences(fingerprint(place.sentinel), place.before)]
    foreign = fingerprint(place.scene.mount / "foreign")
    wrong += [f"foreign: {each}" for each in differences(foreign, place.scene.foreign)]
    others = {path.name for path in place.scene.mount.iterdir()} - {"foreign", "lost+found"}
    wrong += [f"still there: {name}" for name in sorted(others)]
    place.forget()
    return Killed(work, after_s, whom, phase, records, ops, removed, tuple(wrong))


def _victim(pid: int, whom: str) -> int:
    """Return the process, or the child of it that works, if it has one already."""
    if whom == "child":
        with suppress(OSError, IndexError):
            return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    return pid


def _gone(place: Range) -> bool:
    """Wait until all its processes have ended: they are killed with it, not at the same instant."""
    deadline = time.monotonic() + GONE_S
    ours = (str(place.scene.mount), str(place.scene.shell.home))
    while any(word in words for words in _command_lines() for word in ours):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_text()
            if "sshfs" not in words and "glusterfs" not in words:
                yield words


def _phase(place: Range) -> str:
    """Return how far it was when it was killed."""
    marked = [path for path in place.left() if (path / ".replayer-run").exists()]
    if not place.records():
        return "at work" if place.left() else "nothing made, or nothing left"
    events = "".join(_text(folder / "events.jsonl") for folder in place.records())
    status = _status(place.records()[-1])
    if status in {"finished", "interrupted", "failed"}:
        return "removing" if place.left() else "over"
    if '"measured"' in events:
        return "ending" if marked else "removed"
    if '"fio"' in events or (place.records()[-1] / "fio").exists():
        return "at work" if place.left() else "removed"
    return "laying out" if place.left() else "beginning"


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _status(folder: Path) -> str:
    try:
        return str(json.loads((folder / "run.json").read_text())["status"])
    except (OSError, ValueError):
        return "none"


def _read_records(place: Range, wrong: list[str]) -> int:
    """Read every run folder as a user would; returns the calls that are in them."""
    ops = 0
    for folder in place.records():
        shown = _command("report", folder, "--format", "json")
        if not (folder / "run.json").exists():
            if shown.code != REFUSED or place.left():
                wrong.append(f"no run.json, {place.left()}: {shown.err}")
            continue
        if shown.code or not shown.out:
            wrong.append(f"report: {shown.code} {shown.err}")
            continue
        for target in shown.document()["summary"]["targets"]:
            ops += sum(row["count"] for row in target["overall"]["ops"])
    return ops


def _command(*words: str | Path) -> Done:
    """Run a command of replayer in this process, which has imported it already."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main_of_replayer([str(word) for word in words])
    return Done(code, out.getvalue(), err.getvalue())


def _clean(place: Range, wrong: list[str]) -> int:
    """Have the rest removed; one that may be begun only is refused until it is old enough."""
    left = len(place.left())
    done = _command("clean", place.scene.mount)
    if done.code == REFUSED and "a run may be creating it" in done.err:
        done = _command("clean", "--force", place.scene.mount)
    if done.code:
        wrong.append(f"clean: {done.code} {done.err}")
    return left - len(place.left())


def main() -> int:
    """Kill as often as asked, say what came out, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.mounts.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measured", type=int, default=0, help="end when so many hit that phase")
    parser.add_argument("--mount", choices=list(MAKERS), default="tmpfs")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        mount = MAKERS[options.mount](stack, Path(scratch, "place"))[0]
        place = make_range(Path(scratch, "home"), mount)
        for number in range(options.kills):
            work = list(WORKS)[number % len(WORKS)]
            killed = kill_once(place, work, options.seed * 10_000 + number)
            found.append(killed)
            sys.stdout.write(f"{_line(number, killed)}\n")
            sys.stdout.flush()
            if options.measured and _measured(found) >= options.measured:
                break
    sys.stdout.write(f"{_table(found)}\n")
    return 1 if any(each.wrong for each in found) else 0


def _measured(found: list[Killed]) -> int:
    return sum(each.phase == "measured" for each in found)


def _line(number: int, killed: Killed) -> str:
    wrong = "; ".join(killed.wrong) or "as it should be"
    where = f"{killed.work}, {killed.whom} after {killed.after_s:.2f} s, {killed.phase}"
    return f"{number:3} {where}: {killed.ops} ops, {killed.removed} removed: {wrong}"


def _table(found: list[Killed]) -> str:
    lines = [
        "",
        "| killed | kills | phases | records read | folders cleaned | wrong |",
        "|" + "---|" * 6,
    ]
    for work in (*WORKS, "all"):
        own = [each for each in found if work in {each.work, "all"}]
        phases = Counter(each.phase for each in own)
        told = ", ".join(f"{phase} {count}" for phase, count in phases.most_common())
        records, removed = (sum(each.records for each in own), sum(each.removed for each in own))
        wrong = sum(bool(each.wrong) for each in own)
        lines.append(f"| {work} | {len(own)} | {told} | {records} | {removed} | {wrong} |")
    lines += ["", f"{_measured(found)} of {len(found)} hit a measured phase"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
