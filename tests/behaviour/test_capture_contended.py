"""Programs whose processes and threads fight over names, ranges and locks: each replays alike."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.behaviour.probed import capture, load, needs_probe
from tests.behaviour.shell import Shell

pytestmark = [pytest.mark.nightly, needs_probe]

RECORDINGS = 40
"""Of each program: the order of its calls is another one each time."""
FILES = 24

SESSIONS = """
ini_set('session.save_path', 'root');
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
for ($turn = 0; $turn < 20; $turn++) {
    session_id('s' . random_int(0, 3));
    session_start();
    $_SESSION['turns'] = ($_SESSION['turns'] ?? 0) + 1;
    $_SESSION['data'] = str_repeat('x', random_int(0, 500));
    session_write_close();
}
"""
TABLE = """
import sqlite3
table = sqlite3.connect("root/table", timeout=60)
table.execute("create table if not exists t (a, b)")
for turn in range(15):
    table.execute("insert into t values (?, ?)", (turn, "x" * 50))
    table.commit()
"""
APPENDED = """
import fcntl, random
for turn in range(20):
    with open(f"root/s{random.randrange(4)}", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        data = file.read()
        file.seek(0)
        file.truncate()
        file.write(data[-100:] + "x" * 10)
"""
MAKEFILE = """
OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))
all.a: $(OBJECTS)
\tar rc $@ $(OBJECTS)
%.o: %.c
\t$(CC) -c -o $@ $<
"""


def at_once(count: int, *words: str) -> list[str]:
    """A command that runs another one so many times at once."""
    loop = f'for one in $(seq {count}); do "$@" & done; wait'
    return ["sh", "-c", loop, "sh", *words]


COMMITS = """
git init -q .
git config user.email nobody@example.org
git config user.name nobody
for one in $(seq 30); do echo $one > f$one; git add .; git commit -qm $one; done
"""
DIRECTORIES = "for one in 0 1 2 3 4 5 6 7; do mkdir -p root/a/b/c/d/e/f/$((one % 3))/x & done; wait"

SOURCES = f'for one in $(seq {FILES}); do echo "int f$one(void);" > f$one.c; done'

PROGRAMS = {
    "mkdir": ("", ["sh", "-c", DIRECTORIES]),
    "make": (SOURCES, ["make", "-s", "-j4", "-C", "root"]),
    "php": ("", at_once(16, "php", "-r", SESSIONS)),
    "appends": ("", at_once(16, sys.executable, "-c", APPENDED)),
    "sqlite": ("", at_once(6, sys.executable, "-c", TABLE)),
    "git": (COMMITS, ["git", "-C", "root", "-c", "pack.threads=4", "gc", "-q"]),
}
"""What makes their files, and the command."""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_recording_of_a_contended_program_replays_as_recorded(
    program: str, shell: Shell
) -> None:
    if program in ("php", "git", "make") and shutil.which(program) is None:
        pytest.skip(f"{program} is missing")
    layout, words = PROGRAMS[program]
    root, target = shell.home / "root", shell.home / "target"
    for _ in range(RECORDINGS):
        for left in (root, target, shell.home / "trace", shell.home / "run"):
            shutil.rmtree(left, ignore_errors=True)
        root.mkdir()
        target.mkdir()
        (root / "Makefile").write_text(MAKEFILE)
        subprocess.run(["sh", "-ec", layout], cwd=root, check=True)
        recorded = capture(shell, "--", *words)
        assert recorded.code == 0, recorded.err
        words_of_replay = ("--target", "target", "--pace", "closed", "--rounds", "1", "-o", "run")
        done = shell.run("replay", "trace", *words_of_replay, "--json")
        results = json.loads(done.out)["replay"]["results"]
        counts = load(shell)["counts"]
        assert results["diverged"] == [], results["examples"]
        assert results["matched"] == results["compared"] > 0.99 * counts["calls_as_events"]
        assert counts["parents_guessed"] == 0
