"""``python -m tests.bench.duet``: equal targets at one moment and in turns, on a noisy machine.

Two memory file systems, which are alike, while a program of ours keeps a CPU and the memory busy
for some seconds now and then. How wide are the intervals of the ratio, and do they hold 1? A repeat
takes a minute. Needs root.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.report.document import ComparisonRow
from replayer.report.duet import with_duet
from replayer.report.ranking import Side, entrants_of, rank_entrants

SCENARIO = """\
name: thoughtful
about: Files that are read and written, by users who think.
users: {count: 1, think_time: 3ms}
duration: 12s
datasets:
  files: {files: 50, sizes: 64KiB}
  work: {directory: true, per: user}
mix: {save: 1}
transactions:
  save:
    - open: {from: files, pick: uniform}
    - read: {size: 64KiB}
    - close
    - open: {in: work, name: "note", flags: [create, wronly, trunc]}
    - write: {size: 64KiB}
    - close
"""
BURST_S = 3.0
"""Mean of how long the noise lasts, and of the pauses between: longer than a look, shorter than a
turn."""
FIGURES = ("p50", "p95")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.duet", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--time", default="12s", help="measured time of each target")
    parser.add_argument("--noise", type=int, default=1, help="programs that disturb")
    parser.add_argument("--pinned", action="store_true", help="each target has a CPU of its own")
    parser.add_argument("--only-duets", action="store_true", help="no turns beside them")
    asked = parser.parse_args()
    widths: dict[tuple[bool, str], list[float]] = {}
    held: dict[tuple[bool, str], int] = {}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (home / "thoughtful.yaml").write_text(SCENARIO)
        mounts = [stack.enter_context(_memory(home / name)) for name in ("one", "two")]
        for seed in range(asked.noise):
            stack.enter_context(_noise(seed))
        for number in range(asked.repeats):
            for duet in (True,) if asked.only_duets else (True, False):
                folder = home / f"run-{number}-{duet}"
                _run(home, mounts, folder, asked, duet=duet)
                for figure, row in _rows(folder).items():
                    if row.ratio_low is None or row.ratio_high is None:
                        continue
                    widths.setdefault((duet, figure), []).append(
                        math.log(row.ratio_high / row.ratio_low)
                    )
                    is_held = row.ratio_low <= 1 <= row.ratio_high
                    held[duet, figure] = held.get((duet, figure), 0) + is_held
    for figure in FIGURES:
        told = {
            duet: f"{held[duet, figure]} of {len(own)} hold 1, x{math.exp(median(own) / 2):.3f}"
            for duet in (True, False)
            if (own := widths.get((duet, figure)))
        }
        print(f"{figure}: duet {told[True]}", end="")
        if False in told:
            factor = median(widths[False, figure]) / median(widths[True, figure])
            print(f"; turns {told[False]}; {factor:.1f} times as wide", end="")
        print()


@contextmanager
def _memory(place: Path) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", place.name, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@contextmanager
def _noise(seed: int) -> Iterator[None]:
    child = os.fork()
    if child == 0:
        _disturb(random.Random(seed))  # noqa: S311 - it is noise
    try:
        yield
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def _disturb(draws: random.Random) -> None:
    """Keep a CPU and the memory busy for a while, then rest for a while."""
    one = bytearray(32 << 20)
    while True:
        until_s = time.monotonic() + draws.expovariate(1 / BURST_S)
        while time.monotonic() < until_s:
            bytes(one)
        time.sleep(draws.expovariate(1 / BURST_S))


def _pin(process: "subprocess.Popen[str]") -> None:
    """Give the users of each target a CPU of their own, which they exchange every 2 s."""
    while process.poll() is None:
        turn = int(time.monotonic() / 2)
        for comm in Path("/proc").glob("[0-9]*/task/[0-9]*/comm"):
            with suppress(OSError, ValueError, IndexError):
                name, ours = comm.read_text().strip(), comm.parents[2] / "stat"
                parent = int(ours.read_text().rpartition(")")[2].split()[1])
                if name.startswith("user-") and parent == process.pid:
                    cpu = (int(name[5:]) + turn) % 2
                    os.sched_setaffinity(int(comm.parent.name), {cpu})
        time.sleep(0.5)


def _run(
    home: Path, mounts: list[Path], folder: Path, asked: argparse.Namespace, *, duet: bool
) -> None:
    words = [word for mount in mounts for word in ("--target", f"{mount.name}={mount}")]
    words += ["-t", asked.time, "--json", "--quiet", "--yes", "-o", str(folder)]
    command = [sys.executable, "-m", "replayer", "run", str(home / "thoughtful.yaml"), *words]
    process = subprocess.Popen(
        [*command, *(["--duet"] if duet else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if asked.pinned and duet:
        threading.Thread(target=_pin, args=(process,), daemon=True).start()
    document: dict[str, Any] = json.loads(process.communicate()[0])
    beside = document.get("duet") or {"figures": []}
    slowed = ", ".join(f"{each['ratio']:.3f}" for each in beside["figures"])
    print(f"{'duet ' if duet else 'turns'} {document['verdict']['outcome']:12} {slowed}", end=" ")


def _rows(folder: Path) -> dict[str, ComparisonRow]:
    """Return the ratios, whether they may be printed or not: noise makes many a client busy."""
    record = with_duet(load_run(folder))
    sides = [Side(target.name, record, target) for target in record.run.targets]
    ranking = rank_entrants(entrants_of(sides, {id(record): summarise(record)}))
    rows: dict[str, ComparisonRow] = {
        each.figure: each.standings[1]
        for each in ranking.figures
        if each.kind == "transaction" and each.figure in FIGURES
    }
    for figure, row in rows.items():
        print(f"{figure} {row.ratio:.3f} ({row.ratio_low:.3f} to {row.ratio_high:.3f})", end="  ")
    print(flush=True)
    return rows


if __name__ == "__main__":
    main()
