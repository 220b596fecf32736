"""What scenarios predict beside what the real programs need, on the same folder.

``python -m tests.bench.predicted FOLDER [--turns N] [--only NAME]…`` runs each program and the
scenario that stands for it in turns, and prints the time of both and their ratio: tar, cp, rsync,
rm, and PHP with its sessions. What is not installed is left out. Take a folder on the mount that
matters; nothing of it is run by the tests.
"""

import argparse
import errno
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import replayer
from replayer.scenario.manifests import Entry, load_manifest, part_of
from tests.bench.arena import SHARED_MEMORY

MANIFESTS = Path(replayer.__file__).parent / "scenarios/manifests"
DOCROOT = MANIFESTS / "wordpress-6.1.9.tsv.xz"
POOL = random.Random(1).randbytes(1 << 22)  # noqa: S311 (content, not a secret)
PART = 25
"""Per cent of the document root's directories (chosen: seconds on a mount that syncs each file)."""
REQUESTS = 200
SOMEBODY = (33, 33)  # www-data of Debian
SESSION = """
ini_set('session.save_path', $argv[1]);
ini_set('session.use_cookies', '0');
ini_set('session.gc_probability', '0');
$work = 0;
$begin = hrtime(true);
for ($i = 0; $i < (int) $argv[2]; $i++) {
    session_id('bench' . $i % 10);
    session_start(['cache_limiter' => '']);
    $start = hrtime(true);
    $_SESSION['data'] = str_repeat(chr(65 + $i % 26), 1580);
    usleep(2000);
    $work += hrtime(true) - $start;
    session_write_close();
}
echo (hrtime(true) - $begin) / (int) $argv[2], ' ', $work / (int) $argv[2];
"""
"""A page's use of its session: 1,600 bytes, 2 ms of work, of which it says how long it was."""


@dataclass(frozen=True)
class Pair:
    """A program, and the transaction of a scenario that stands for it.

    Attributes:
        program: What must be installed.
        measure: Runs the program in a folder.
        scenario: Its name.
        words: More words for ``replayer run``.
    """

    program: str
    measure: Callable[[Path], "Measured"]
    scenario: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """What a program needed.

    Attributes:
        seconds: Of one transaction.
        words: More words for ``replayer run`` that only the program can tell.
    """

    seconds: float
    words: tuple[str, ...] = ()


def main() -> None:
    """Run the pairs that were asked for and print a table."""
    asked = _arguments()
    heads = f"{'program s':>10} {'scenario s':>10} {'ratio':>6} {'lowest':>7} {'highest':>7}"
    print(f"{'program':<10} {'scenario':<18} {heads}")
    for name, pair in _pairs().items():
        if asked.only and name not in asked.only:
            continue
        if shutil.which(pair.program) is None:
            print(f"{name:<10} {pair.program} is not installed")
            continue
        turns = [_turn(pair, asked.folder) for _ in range(asked.turns)]
        real, predicted = (median(times) for times in zip(*turns, strict=True))
        ratios = sorted(mine / theirs for theirs, mine in turns)
        spread = f"{median(ratios):>6.2f} {ratios[0]:>7.2f} {ratios[-1]:>7.2f}"
        print(
            f"{name:<10} {pair.scenario:<18} {real:>10.4f} {predicted:>10.4f} {spread}", flush=True
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    parser.add_argument("--only", action="append", choices=sorted(_pairs()), metavar="NAME")
    return parser.parse_args()


def _pairs() -> Mapping[str, Pair]:
    return {
        "tar": Pair("tar", _tar, "kernel-untar", _only("untar", *_tree("linux"))),
        "cp": Pair("cp", _cp, "wordpress-deploy", _deployer("cp")),
        "rsync": Pair("rsync", _rsync, "wordpress-deploy", _deployer(_rsync_transaction())),
        "rm": Pair("rm", _rm, "rm-rf", _only("remove", *_tree("tree"))),
        "copy": Pair("cp", _copy, "docroot-copy", _only("copy", *_tree("docroot"), "iterations=1")),
        "php": Pair("php", _php, "php-sessions", _only("shared_session", f"iterations={REQUESTS}")),
    }


def _only(transaction: str, *settings: str) -> tuple[str, ...]:
    return tuple(f"--set={text}" for text in (f"mix={{{transaction}: 1}}", *settings))


def _tree(dataset: str) -> tuple[str, str]:
    return f"{dataset}.manifest=wordpress-6.1.9", f"{dataset}.part={PART}%"


def _deployer(transaction: str) -> tuple[str, ...]:
    role = f"roles.deployer.mix={{{transaction}: 1}}"
    parts = (f"--set={name}.part={PART}%" for name in ("release", "site"))
    return ("--set", role, "--set", "iterations=1", "--set", "users.think_time=0s", *parts)


def _rsync_transaction() -> str:
    """Return the transaction of the installed version: 3.5 walks through every component."""
    if shutil.which("rsync") is None:
        return "rsync"
    shown = subprocess.run(["rsync", "--version"], check=True, capture_output=True, text=True)
    found = re.search(r"version (\d+)\.(\d+)", shown.stdout)
    newer = found is not None and (int(found[1]), int(found[2])) >= (3, 5)
    return "rsync_3_5" if newer else "rsync"


def _turn(pair: Pair, folder: Path) -> tuple[float, float]:
    """Return the seconds of the program and of the scenario."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="predicted-") as place:
        os.sync()
        real = pair.measure(Path(place))
    os.sync()
    return real.seconds, _run_scenario(pair, folder, real.words)


def _run_scenario(pair: Pair, folder: Path, more: tuple[str, ...]) -> float:
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as output:
        run = Path(output) / "run"
        words = [sys.executable, "-m", "replayer", "run", pair.scenario, "-u", "1", "--quiet"]
        words += ["--cache", _cache_state(folder)]
        places = [f"--target={folder}", f"--output={run}"]
        # Exit code 4 (inconclusive) is no failure: few samples, and one busy CPU.
        code = subprocess.call([*words, *places, *pair.words, *more], stdout=subprocess.DEVNULL)
        if code not in {0, 4}:
            message = f"{pair.scenario} failed with exit code {code}"
            raise RuntimeError(message)
        summary = json.loads((run / "run.json").read_text())["summary"]
    (transaction,) = summary["targets"][0]["overall"]["transactions"]
    return float(transaction["latency"]["mean_ns"]) / 1e9


def _cache_state(folder: Path) -> str:
    """Have what is laid out on disk or server when the clock starts, as the programs find it.

    NFS writes it at close; reading it there would take delegations, which removing gives back.
    """
    found = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], check=True, capture_output=True, text=True
    )
    return "as-is" if found.stdout.strip() == "nfs" else "warm"


def _tar(place: Path) -> Measured:
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
        _lay_out(Path(memory) / "tree")
        tarball = f"{memory}/tree.tar"
        subprocess.run(["tar", "-cf", tarball, "-C", f"{memory}/tree", "."], check=True)
        return _timed(["tar", "-xf", tarball, "-C", str(place)])


def _cp(place: Path) -> Measured:
    _lay_out(place / "source")
    found = _timed(["cp", "-a", str(place / "source"), str(place / "copy")])
    return found if _has_access_lists(place) else replace(found, words=MODE_TOO)


MODE_TOO = ("--set=sequences.mode_too.0.repeat.times=1",)


def _has_access_lists(place: Path) -> bool:
    """Tell whether cp sets modes by way of access control lists there."""
    try:
        os.getxattr(place, "system.posix_acl_access")
    except OSError as error:
        return error.errno != errno.EOPNOTSUPP
    return True


def _copy(place: Path) -> Measured:
    """Copy from another file system, as docroot-copy does."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
        source = Path(memory) / "source"
        _lay_out(source)
        for path in (source, *source.rglob("*")):
            os.chown(path, *SOMEBODY)  # whoever copies sets the owner then
        return _timed(["cp", "-a", str(source), str(place / "copy")])


def _rsync(place: Path) -> Measured:
    _lay_out(place / "source")
    return _timed(["rsync", "-a", f"{place}/source/", f"{place}/copy"])


def _rm(place: Path) -> Measured:
    _lay_out(place / "tree")
    return _timed(["rm", "-rf", str(place / "tree")])


def _php(place: Path) -> Measured:
    words = ["php", "-r", SESSION, str(place), str(REQUESTS)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    whole_ns, work_ns = map(float, done.stdout.split())
    return Measured(whole_ns / 1e9, (f"--set=sequences.work.0.think={work_ns:.0f}ns",))


def _timed(words: Sequence[str]) -> Measured:
    os.sync()
    begin = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return Measured(time.monotonic() - begin)


def _lay_out(top: Path) -> None:
    """Make the document root that the scenarios know, with random content."""
    top.mkdir()
    for entry in _entries():
        if entry.type == "d":
            (top / entry.path).mkdir(parents=True)
        else:
            (top / entry.path).write_bytes(POOL[: entry.size])


def _entries() -> tuple[Entry, ...]:
    return part_of(load_manifest(DOCROOT), PART)


if __name__ == "__main__":
    main()
