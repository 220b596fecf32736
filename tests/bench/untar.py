"""The scenario kernel-untar beside GNU tar unpacking the same tree, in turns.

The tarball is made from the scenario's own manifest, with random content, in memory.
"""

import io
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import replayer
from tests.bench.arena import SHARED_MEMORY

LIMIT = 1.15
SCENARIO = "kernel-untar"
MANIFESTS = Path(replayer.__file__).parent / "scenarios/manifests"
MANIFEST = "linux-4.7.2-like"
POOL_BYTES = 1 << 22


@dataclass(frozen=True)
class Untar:
    """Times of the same tree unpacked by both.

    Attributes:
        engine_s: Median latency of the scenario's transaction.
        tar_s: Median wall time of GNU tar.
        ratio: Median over the turns of engine / tar.
    """

    engine_s: float
    tar_s: float
    ratio: float

    def passes(self) -> bool:
        return self.ratio <= LIMIT

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def untar(arena: Path, turns: int) -> Untar:
    """Unpack the same tree with both, in turns."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        tarball = Path(folder) / "tree.tar"
        make_tarball(tarball, MANIFEST)
        pairs = [
            (_run_scenario(arena, Path(folder) / f"run-{turn}"), _run_tar(arena, tarball))
            for turn in range(turns)
        ]
    engine_s, tar_s = (median(times) for times in zip(*pairs, strict=True))
    return Untar(engine_s, tar_s, median(mine / theirs for mine, theirs in pairs))


def _run_scenario(arena: Path, folder: Path) -> float:
    os.sync()
    words = [sys.executable, "-m", "replayer", "run", SCENARIO, "-u", "1", "--quiet"]
    places = [f"--target={arena}", f"--output={folder}", "--set=linux.part=100%"]
    # Exit code 4 (inconclusive) is no failure: one user without think time keeps a CPU busy.
    if subprocess.call([*words, *places], stdout=subprocess.DEVNULL) not in {0, 4}:
        message = f"{SCENARIO} failed"
        raise RuntimeError(message)
    run = json.loads((folder / "run.json").read_text())
    (transaction,) = run["summary"]["targets"][0]["overall"]["transactions"]
    return float(transaction["latency"]["mean_ns"]) / 1e9


def _run_tar(arena: Path, tarball: Path) -> float:
    folder = arena / "tar"
    folder.mkdir()
    os.sync()
    begin = time.monotonic()
    subprocess.run(["tar", "-xf", str(tarball), "-C", str(folder)], check=True, capture_output=True)
    elapsed_s = time.monotonic() - begin
    shutil.rmtree(folder)
    return elapsed_s


def make_tarball(tarball: Path, manifest: str, most: int | None = None) -> None:
    """Make a tarball of what a shipped manifest lists, or of so many of its first rows."""
    pool = random.Random(1).randbytes(POOL_BYTES)  # noqa: S311 (content, not a secret)
    with tarfile.open(tarball, "w", format=tarfile.GNU_FORMAT) as archive:
        for member in islice(_members(MANIFESTS / f"{manifest}.tsv.xz"), most):
            archive.addfile(member, io.BytesIO(pool[: member.size]))


def _members(manifest: Path) -> Iterator[tarfile.TarInfo]:
    types = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE}
    with lzma.open(manifest, "rt", encoding="utf-8") as lines:
        next(lines)  # the header
        for line in lines:
            path, kind, size, mode, link = line.rstrip("\n").split("\t")
            member = tarfile.TarInfo(path)
            member.type, member.linkname = types[kind], link
            member.size = int(size) if kind == "f" else 0
            member.mode = int(mode, 8)
            yield member
