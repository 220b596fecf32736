"""The bench compares like with like: the C program and the engine make the same system calls."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from replayer import _native as engine
from tests.bench import contenders, race

ROOT = Path(__file__).parents[2]
USERS, FILES = 1, 3
CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (\S+)")
OPENED = re.compile(r"flags=([A-Z_|]+)(?:, mode=(\d+))?, resolve=([A-Z_|]+)")
TRACE = (
    "openat2,openat,open,newfstatat,stat,statx,unlinkat,unlink,read,pread64,write,pwrite64,close"
)
ENGINE = """
import sys, pathlib
from tests.bench import contenders, race
arena = pathlib.Path(sys.argv[1])
native = contenders.Native(arena, arena, 1)
for work in race.LIFE:
    native.run(contenders.Heat(work, 1, 3))
"""


def _traced(log: Path, *command: str) -> list[tuple[str, ...]]:
    words = ["strace", "-f", "-y", "-qq", "-e", f"trace={TRACE}", "-e", "signal=none", "-o"]
    subprocess.run([*words, str(log), *command], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return [_shape(line) for line in log.read_text().splitlines() if "files/u0/f" in line]


def _shape(line: str) -> tuple[str, ...]:
    """Reduce a line to the call, the file, how it was opened, and what came back if not a file."""
    found = CALL.match(line)
    assert found is not None, line
    name, operands, result = found.groups()
    file = re.search(r"files/u0/f\d+", line)
    assert file is not None
    # O_LARGEFILE means nothing where off_t has 64 bits.
    how = OPENED.search(operands.replace("|O_LARGEFILE", ""))
    return (name, file[0], *(how.groups("") if how else ()), "file" if "<" in result else result)


@pytest.mark.skipif(os.geteuid() != 0, reason="only a jailed engine makes one call an op")
def test_the_yardstick_and_the_engine_make_the_same_calls(tmp_path: Path) -> None:
    assert engine.confinement() == "jailed"
    binary = contenders.build_yardstick(tmp_path)
    folder = tmp_path / "c"
    (folder / "files/u0").mkdir(parents=True)
    of_c = [
        call
        for work in race.LIFE
        for call in _traced(
            tmp_path / "c.log",
            *(
                str(binary),
                str(folder),
                work.name,
                str(USERS),
                str(FILES),
                str(work.passes),
                "bare",
            ),
        )
    ]
    of_engine = _traced(tmp_path / "engine.log", sys.executable, "-c", ENGINE, str(tmp_path))
    assert of_engine == of_c
