"""What fio and the engine are compared on: the same calls, flags, sizes and files, by strace."""

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from replayer import _native as engine
from tests.bench.twins import PATTERNS

pytestmark = [
    pytest.mark.skipif(
        shutil.which("fio") is None or shutil.which("strace") is None,
        reason="fio or strace is not installed",
    ),
    pytest.mark.skipif(
        engine.confinement() != "jailed", reason="only a jailed engine makes one call an op"
    ),
]

Shape = tuple[str, str]
Shapes = dict[tuple[str, str], set[Shape]]

ROOT = Path(__file__).parents[2]
CALL = re.compile(r"^(?P<time>[\d.]+) (?P<name>\w+)\((?P<rest>.*)\) += (?P<result>-?\d+)")
FILE = re.compile(r"/replayer-bench-(?P<pattern>[a-z0-9-]+)/files/(?P<file>f\d+|tmp\w+/[a-z])")
FLAGS = re.compile(r"O_[A-Z]+(?:\|O_[A-Z]+)*")
MEANINGLESS = {"O_CLOEXEC", "O_LARGEFILE", "O_NOFOLLOW", "O_NONBLOCK"}
TRACE = (
    "openat2,openat,open,read,readv,pread64,preadv,write,writev,pwrite64,pwritev,lseek,fsync,"
    "fdatasync,ftruncate,fallocate,fadvise64"
)
BOTH = """
import sys
from dataclasses import replace
from pathlib import Path
from tests.bench import twins
folder = Path(sys.argv[1])
record = folder / "record"
record.mkdir()
twins.RAMP_S = 0.01

def until_measured(measure, seconds):
    # For longer where the machine is too busy for one I/O to end in the time.
    while True:
        try:
            return measure(seconds)
        except (KeyError, ZeroDivisionError):
            seconds *= 2

for pattern in twins.PATTERNS:
    if pattern.op == "write":  # short files, so that they are begun anew however slow it goes
        pattern = replace(pattern, size_bytes=4 * pattern.block_bytes, times=4)
    with twins.Native(pattern, folder, record, 500) as native:
        (record / f"begin-{pattern.name}").write_text("now")
        until_measured(native.measure, 0.03)
        until_measured(lambda seconds: twins.run_fio(pattern, native.files(), seconds), 0.3)
    (record / f"end-{pattern.name}").write_text("now")
"""


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Shapes:
    """What each pattern's calls on its files were, by pattern and by who made them."""
    folder = tmp_path_factory.mktemp("twins")
    logs = folder / "logs"
    logs.mkdir()
    words = ["strace", "-ff", "-y", "-ttt", "-qq", "-s", "0", "-e", f"trace={TRACE}"]
    words += ["-e", "signal=none", "-o", str(logs / "log")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*words, sys.executable, "-c", BOTH, str(folder)]
    ended = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    lines = [line for log in logs.iterdir() for line in log.read_text().splitlines()]
    return _shapes(lines)


def _shapes(lines: list[str]) -> Shapes:
    begins = {pattern.name: _mark(lines, f"begin-{pattern.name}") for pattern in PATTERNS}
    ends = {pattern.name: _mark(lines, f"end-{pattern.name}") for pattern in PATTERNS}
    found: Shapes = defaultdict(set)
    for line in lines:
        call, file = CALL.match(line), FILE.search(line)
        if call is None or file is None:
            continue
        name = file["pattern"]
        if begins[name] < float(call["time"]) < ends[name]:
            who = "engine" if file["file"].startswith("f") else "fio"
            found[name, who].add(_shape(call["name"], call["rest"], call["result"]))
    return found


def _mark(lines: list[str], name: str) -> float:
    return next(float(line.split()[0]) for line in lines if f"/record/{name}" in line)


def _shape(name: str, rest: str, result: str) -> Shape:
    """Reduce a call to its name, and how it opened a file or how much it moved."""
    if not name.startswith("open"):
        return name, result
    flags = FLAGS.search(rest)
    words = set() if flags is None else set(flags[0].split("|"))
    return "open", " ".join(sorted(words - MEANINGLESS))


@pytest.mark.parametrize("name", [pattern.name for pattern in PATTERNS])
def test_fio_and_its_twin_make_the_same_calls_on_the_same_files(shapes: Shapes, name: str) -> None:
    assert shapes[name, "engine"] == shapes[name, "fio"]
    assert {call for call, _ in shapes[name, "engine"]} > {"open"}
