"""Pages that programs touch through mappings: recorded as reads of them, and replayed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.behaviour.probed import capture, load, needs_probe
from tests.behaviour.shell import Shell

pytestmark = needs_probe

TELLS_PAGES = b"btf_trace_mm_filemap_map_pages" in Path("/sys/kernel/btf/vmlinux").read_bytes()
needs_pages = pytest.mark.skipif(
    not TELLS_PAGES, reason="this kernel does not tell of which file a page is (6.11 and later do)"
)
READ = """
import mmap, os
fd = os.open("root/data", os.O_RDONLY)
view = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
os.close(fd)
for page in [*range(300), 900, 700, 500]:
    view[page * 4096]
with open("root/out", "wb") as out:
    out.write(view[800 * 4096:800 * 4096 + 10])
"""
REPOSITORY = (
    "mkdir -p root/repo && cd root/repo && git init -q && "
    "git config user.email a@example.org && git config user.name a && "
    "for i in $(seq 30); do seq $i 3000 > f$i; git add . && git commit -qm c$i; done"
)
GIT = (
    "cd root/repo && git status && git log --oneline && git show HEAD~1 && git gc -q && git log -p"
)
SQLITE = """
import sqlite3
with sqlite3.connect("root/shop.db") as base:
    base.execute("pragma mmap_size = 268435456")
    base.execute("create table if not exists t (a integer primary key, b blob)")
    base.executemany("insert into t (b) values (?)", [(bytes(3000),) for _ in range(300)])
    base.commit()
    base.execute("select sum(length(b)) from t").fetchone()
"""

THREADS = """
import mmap, os, random, threading

for name in "abcd":
    with open(f"root/{name}", "wb", buffering=0) as made:
        for _ in range(200):
            made.write(bytes(4096))

def look(number):
    chance = random.Random(number)
    for turn in range(20):
        fd = os.open("root/" + chance.choice("abcd"), os.O_RDWR)
        view = mmap.mmap(fd, 0)
        os.close(fd)
        for _ in range(30):
            view[chance.randrange(200) * 4096]
        view[chance.randrange(200) * 4096] = 1
        with open(f"root/out{number}", "ab") as out:
            out.write(view[5 * 4096:9 * 4096])
        if turn % 7 == 3:
            child = os.fork()
            if not child:
                view[chance.randrange(200) * 4096]
                os._exit(0)
            os.waitpid(child, 0)
        view.close()
    with open(f"root/grows{number}", "w+b") as grows:
        for turn in range(1, 20):
            os.ftruncate(grows.fileno(), turn * 40960)
            with mmap.mmap(grows.fileno(), 0) as view:
                view[turn * 40960 - 1] = 1
                view.resize((turn + 1) * 40960)
                view[turn * 40960 + 5]
    os.unlink(f"root/grows{number}")

threads = [threading.Thread(target=look, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def replayed(shell: Shell) -> None:
    done = shell.run("replay", "trace", "--target", shell.target(), "--pace", "asap")
    assert done.code in (0, 4), done.err  # 4: the machine was too busy to judge times
    assert "100 % as recorded, 0 diverged" in done.out


@needs_pages
def test_pages_that_a_program_touches_are_read_through_a_mapping_again(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/data").write_bytes(bytes(1000 * 4096))
    assert capture(shell, "--", sys.executable, "-c", READ).code == 0
    document = load(shell)
    counts = document["counts"]
    assert (counts["files_mapped"], counts["pages_written"]) == (1, 0)
    # As few as there are large folios: the kernel maps all pages of one at the first touch.
    assert counts["pages_touched"] >= counts["ops"]["mmap_read"] >= 1
    assert document["blind_spots"] == {"mmap (in part)": 1}
    assert "of 1 file touched" in " ".join(shell.run("show", "trace").out.split())
    replayed(shell)


@needs_pages
@pytest.mark.nightly
def test_the_mappings_of_a_database_are_read_again(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    for trace in ("made", "trace"):
        assert capture(shell, "--", sys.executable, "-c", SQLITE, trace=trace).code == 0
    assert load(shell)["counts"]["ops"]["mmap"] >= 1
    replayed(shell)


@needs_pages
@pytest.mark.nightly
def test_threads_and_children_share_mappings_that_grow_and_end(shell: Shell) -> None:
    assert capture(shell, "--", sys.executable, "-c", THREADS).code == 0
    document = load(shell)
    assert document["counts"]["pages_touched"] > document["counts"]["pages_written"] > 0
    assert document["counts"]["files_mapped"] == 10
    replayed(shell)


@needs_pages
@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_the_packs_and_the_index_of_git_are_read_again(shell: Shell) -> None:
    subprocess.run(["sh", "-c", REPOSITORY], cwd=shell.home, check=True)
    assert capture(shell, "--", "sh", "-c", GIT).code == 0
    assert load(shell)["counts"]["pages_touched"] >= 1
    replayed(shell)


def test_a_program_that_maps_nothing_below_the_roots_has_no_pages(shell: Shell) -> None:
    assert capture(shell, "--", sys.executable, "-c", "open('root/a', 'w')").code == 0
    document = load(shell)
    assert document["counts"]["pages_touched"] == 0
    assert "page_fault" not in document["counts"]["calls_out_of_scope"]
