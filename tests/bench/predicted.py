"""What scenarios predict beside what the real programs need, on the same folder.

``python -m tests.bench.predicted [FOLDER] [--turns N] [--part PERCENT] [--only NAME]…`` runs each
program and the scenario that stands for it in turns, and prints the time of both and their ratio:
tar, cp, rsync, rm, and PHP with its sessions. tar and rm get a part of a kernel's tree, the others
one of WordPress; where each file takes milliseconds, take less of them. In a turn the program runs
before and after the scenario, and the mean counts, as machines get slower and faster. The second
ratio is without what the scenario leaves out and what is its own: what the engine itself costs as
its run tells it (a look at the clock is a system call on some machines), the start of the program's
process, and tar's reading of its archive (``tar -xO`` into nothing). On NFS each turn prints, by
operation, what the two asked the server. What is not installed is left out. Take a folder on the
mount that matters; without any, each run has an ext4 of its own, made anew in memory (root only):
inodes that one run has freed slow down the next one's search for free ones. Nothing of it is run by
the tests.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import programs
from tests.bench.arena import SHARED_MEMORY, ext4
from tests.bench.programs import Measured
from tests.bench.wire import Wire, load_asked, show_beside

PART = 25
"""Per cent of the trees' directories (chosen: a second or less on a local file system)."""


@dataclass(frozen=True)
class Pair:
    """A program, and the transaction of a scenario that stands for it.

    Attributes:
        program: What must be installed.
        measure: Runs the program in a folder, with so many per cent of its tree.
        scenario: Its name.
        words: More words for ``replayer run``.
    """

    program: str
    measure: Callable[[Path, int], Measured]
    scenario: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Predicted:
    """What a scenario says of its transaction.

    Attributes:
        seconds: It takes.
        in_calls_s: Of which are file calls, with a look at the clock in each.
        own_s: Of which are the engine's own.
        calls: It is made of.
        wire: What all of them asked a server; None where there is none.
    """

    seconds: float
    in_calls_s: float
    own_s: float
    calls: float
    wire: Wire | None


Turn = tuple[Measured, Predicted]


def main() -> None:
    """Run the pairs that were asked for and print a table."""
    asked = _arguments()
    heads = f"{'program s':>10} {'scenario s':>10} {'ratio':>6} {'lowest':>7} {'highest':>7}"
    print(f"{'program':<10} {'scenario':<18} {heads} {'own us':>7} {'without':>7}")
    for name, pair in _pairs(asked.part).items():
        if asked.only and name not in asked.only:
            continue
        if shutil.which(pair.program) is None:
            print(f"{name:<10} {pair.program} is not installed")
            continue
        turns = [_turn(pair, asked) for _ in range(asked.turns)]
        both = [(theirs.seconds, mine.seconds, theirs, mine) for theirs, mine in turns]
        print(f"{name:<10} {pair.scenario:<18} {_in_figures(both)}", flush=True)
        known = [
            (theirs.calls_s, mine.in_calls_s, theirs, mine)
            for theirs, mine in turns
            if theirs.calls_s is not None
        ]
        if known:
            print(f"{'':<10} {'its file calls':<18} {_in_figures(known)}", flush=True)


def _in_figures(turns: Sequence[tuple[float, float, Measured, Predicted]]) -> str:
    """Return medians of both, of their ratio, and of that without what is no file call.

    Args:
        turns: Seconds of the program and of the scenario that are meant, and what both say else.
    """
    real = median(turn[0] for turn in turns)
    predicted = median(turn[1] for turn in turns)
    ratios = sorted(turn[1] / turn[0] for turn in turns)
    without = median(
        (mine_s - mine.own_s) / (theirs_s - theirs.aside_s)
        for theirs_s, mine_s, theirs, mine in turns
    )
    own_us = median(mine.own_s / mine.calls for *_, mine in turns) * 1e6
    spread = f"{median(ratios):>6.2f} {ratios[0]:>7.2f} {ratios[-1]:>7.2f}"
    return f"{real:>10.4f} {predicted:>10.4f} {spread} {own_us:>7.2f} {without:>7.2f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    parser.add_argument("--only", action="append", choices=sorted(_pairs(PART)), metavar="NAME")
    parser.add_argument("--part", type=int, default=PART, metavar="PERCENT", help=f"({PART})")
    return parser.parse_args()


def _pairs(part: int) -> Mapping[str, Pair]:
    linux = _only("untar", *_tree("linux", programs.KERNEL, part))
    docroot = _only("copy", *_tree("docroot", programs.DOCROOT, part), "iterations=1")
    removed = _only("remove", *_tree("tree", programs.KERNEL, part))
    return {
        "tar": Pair("tar", programs.tar, "kernel-untar", linux),
        "cp": Pair("cp", programs.cp, "wordpress-deploy", _deployer("cp", part)),
        "rsync": Pair(
            "rsync", programs.rsync, "wordpress-deploy", _deployer(_rsync_transaction(), part)
        ),
        "rm": Pair("rm", programs.rm, "rm-rf", removed),
        "copy": Pair("cp", programs.copy, "docroot-copy", docroot),
        "php": Pair(
            "php",
            programs.php,
            "php-sessions",
            _only("shared_session", f"iterations={programs.REQUESTS}"),
        ),
    }


def _only(transaction: str, *settings: str) -> tuple[str, ...]:
    return tuple(f"--set={text}" for text in (f"mix={{{transaction}: 1}}", *settings))


def _tree(dataset: str, manifest: str, part: int) -> tuple[str, str]:
    return f"{dataset}.manifest={manifest}", f"{dataset}.part={part}%"


def _deployer(transaction: str, part: int) -> tuple[str, ...]:
    role = f"roles.deployer.mix={{{transaction}: 1}}"
    parts = (f"--set={name}.part={part}%" for name in ("release", "site"))
    return ("--set", role, "--set", "iterations=1", "--set", "users.think_time=0s", *parts)


def _rsync_transaction() -> str:
    """Return the transaction of the installed version: 3.5 walks through every component."""
    if shutil.which("rsync") is None:
        return "rsync"
    shown = subprocess.run(["rsync", "--version"], check=True, capture_output=True, text=True)
    found = re.search(r"version (\d+)\.(\d+)", shown.stdout)
    newer = found is not None and (int(found[1]), int(found[2])) >= (3, 5)
    return "rsync_3_5" if newer else "rsync"


def _turn(pair: Pair, asked: argparse.Namespace) -> Turn:
    """Run both, and show what they asked a server."""
    before = _run_program(pair, asked)
    with _place(asked.folder) as folder:
        predicted = _run_scenario(pair, folder, before.words)
    if before.wire is not None and predicted.wire is not None:
        print(*show_beside(before.wire, predicted.wire), sep="\n")
        print(
            f"  {'seconds in all':<14} {before.seconds:>8.3f} {predicted.seconds:>8.3f}", flush=True
        )
    return before.mean_with(_run_program(pair, asked)), predicted


def _run_program(pair: Pair, asked: argparse.Namespace) -> Measured:
    with (
        _place(asked.folder) as folder,
        tempfile.TemporaryDirectory(dir=folder, prefix="predicted-") as place,
    ):
        os.sync()
        real = pair.measure(Path(place), asked.part)
    os.sync()
    return real


def _place(asked: Path | None) -> AbstractContextManager[Path]:
    return ext4() if asked is None else nullcontext(asked)


def _run_scenario(pair: Pair, folder: Path, more: tuple[str, ...]) -> Predicted:
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as output:
        run, note = Path(output) / "run", Path(output) / "note"
        words = [*_command(folder, note), "run", pair.scenario, "-u", "1", "--quiet"]
        words += ["--cache", _cache_state(folder), f"--target={folder}", f"--output={run}"]
        # Exit code 4 (inconclusive) is no failure: few samples, and one busy CPU.
        code = subprocess.call([*words, *pair.words, *more], stdout=subprocess.DEVNULL)
        if code not in {0, 4}:
            message = f"{pair.scenario} failed with exit code {code}"
            raise RuntimeError(message)
        told = json.loads((run / "run.json").read_text())
        return _prediction(told, load_asked(note) if note.exists() else None)


def _prediction(told: Mapping[str, Any], wire: Wire | None) -> Predicted:
    overall = told["summary"]["targets"][0]["overall"]
    (transaction,) = overall["transactions"]
    count, overhead_ns = transaction["count"], float(told["health"]["overhead_ns"])
    outcomes = [found for op in overall["ops"] for found in op["outcomes"]]
    calls = sum(found["count"] for found in outcomes) / count
    in_calls_s = sum(found["count"] * found["mean_ns"] for found in outcomes) / count / 1e9
    seconds = float(transaction["latency"]["mean_ns"]) / 1e9
    return Predicted(seconds, in_calls_s, calls * overhead_ns / 1e9, calls, wire)


def _command(folder: Path, note: Path) -> list[str]:
    """Return how to call replayer; on NFS so that what its measured phase asks is noted."""
    if _is_on_nfs(folder):
        return [sys.executable, "-m", "tests.bench.wire", str(note), str(folder)]
    return [sys.executable, "-m", "replayer"]


def _cache_state(folder: Path) -> str:
    """Have what is laid out on disk or server when the clock starts, as the programs find it.

    NFS writes it at close; reading it there would take delegations, which removing gives back.
    """
    return "as-is" if _is_on_nfs(folder) else "warm"


def _is_on_nfs(folder: Path) -> bool:
    found = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], check=True, capture_output=True, text=True
    )
    return found.stdout.strip() == "nfs"


if __name__ == "__main__":
    main()
