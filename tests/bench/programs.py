"""The real programs that scenarios stand for: each is run on a folder, timed and counted.

What they work on is the document root that the scenarios know, with random content.
"""

import errno
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import replayer
from replayer.scenario.manifests import load_manifest, part_of
from tests.bench.arena import SHARED_MEMORY
from tests.bench.wire import Wire, asked_on, asked_since

__all__ = ["DOCROOT", "KERNEL", "REQUESTS", "Measured", "copy", "cp", "php", "rm", "rsync", "tar"]

MANIFESTS = Path(replayer.__file__).parent / "scenarios/manifests"
DOCROOT = "wordpress-6.1.9"
KERNEL = "linux-4.7.2-like"
POOL = random.Random(1).randbytes(1 << 22)  # noqa: S311 (content, not a secret)
REQUESTS = 200
STARTS = 3
VISITORS = 2
SOMEBODY = (33, 33)  # www-data of Debian
SESSION = """
ini_set('session.save_path', $argv[1]);
ini_set('session.use_cookies', '0');
ini_set('session.gc_probability', '0');
$work = 0;
$length = [1580, 1580];
mt_srand(1);
$begin = hrtime(true);
for ($i = 0; $i < (int) $argv[2]; $i++) {
    $visitor = $i < 2 ? $i : mt_rand(0, 1);
    session_id('bench' . $visitor);
    session_start(['cache_limiter' => '']);
    $start = hrtime(true);
    $length[$visitor] += $i % 11 == 10 ? -1 : 1;
    $_SESSION['data'] = str_repeat(chr(65 + $i % 26), $length[$visitor]);
    usleep(2000);
    $work += hrtime(true) - $start;
    session_write_close();
}
echo (hrtime(true) - $begin) / (int) $argv[2], ' ', $work / (int) $argv[2];
"""
"""Requests of two visitors: 1,600 bytes, shorter than before in one of eleven, and 2 ms of work.

It says how long a request took, and how long its work.
"""


@dataclass(frozen=True)
class Measured:
    """What a transaction needed.

    Attributes:
        seconds: Of one transaction.
        wire: What all of them asked a server; None where there is none.
        words: More words for ``replayer run`` that only the program can tell.
        calls_s: Of the time, what was not work that the program does between its file calls; None:
            not known apart.
        aside_s: Of the time, what it takes the program to be there, and tar to read its archive.
    """

    seconds: float
    wire: Wire | None
    words: tuple[str, ...] = ()
    calls_s: float | None = None
    aside_s: float = 0.0

    def mean_with(self, other: "Measured") -> "Measured":
        """Return the same with the means of the times of both."""
        mine_s, others_s = self.calls_s, other.calls_s
        return replace(
            self,
            seconds=(self.seconds + other.seconds) / 2,
            calls_s=None if mine_s is None or others_s is None else (mine_s + others_s) / 2,
            aside_s=(self.aside_s + other.aside_s) / 2,
        )


def tar(place: Path, part: int) -> Measured:
    """Unpack from memory."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
        _lay_out(Path(memory) / "tree", KERNEL, part)
        tarball = f"{memory}/tree.tar"
        subprocess.run(["tar", "-cf", tarball, "-C", f"{memory}/tree", "."], check=True)
        unpacked = _timed(["tar", "-xf", tarball, "-C", str(place)], place)
        return replace(unpacked, aside_s=_shortest(["tar", "-xOf", tarball]))


def cp(place: Path, part: int) -> Measured:
    """Copy within the mount."""
    _lay_out(place / "source", DOCROOT, part)
    found = _timed(["cp", "-a", str(place / "source"), str(place / "copy")], place)
    return found if _has_access_lists(place) else replace(found, words=WITHOUT_LISTS)


WITHOUT_LISTS = (
    "--set=sequences.mode_too.0.repeat.times=1",
    "--set=sequences.default_list.0.repeat.times=0",
)


def _has_access_lists(place: Path) -> bool:
    """Tell whether cp sets modes by way of access control lists there."""
    try:
        os.getxattr(place, "system.posix_acl_access")
    except OSError as error:
        return error.errno != errno.EOPNOTSUPP
    return True


def copy(place: Path, part: int) -> Measured:
    """Copy from another file system, as docroot-copy does."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
        source = Path(memory) / "source"
        _lay_out(source, DOCROOT, part)
        for path in (source, *source.rglob("*")):
            os.chown(path, *SOMEBODY)  # whoever copies sets the owner then
        return _timed(["cp", "-a", str(source), str(place / "copy")], place)


def rsync(place: Path, part: int) -> Measured:
    """Copy within the mount."""
    _lay_out(place / "source", DOCROOT, part)
    return _timed(["rsync", "-a", f"{place}/source/", f"{place}/copy"], place)


def rm(place: Path, part: int) -> Measured:
    """Remove a part of a kernel's tree."""
    _lay_out(place / "tree", KERNEL, part)
    return _timed(["rm", "-rf", str(place / "tree")], place)


def php(place: Path, _: int) -> Measured:
    """Serve requests with sessions."""
    _php(place, VISITORS)
    before = asked_on(place)
    done = _php(place, REQUESTS)
    whole_ns, work_ns = map(float, done.split())
    wire, words = asked_since(place, before), CUT_ALWAYS if _cuts_always() else ()
    return Measured(whole_ns / 1e9, wire, words, (whole_ns - work_ns) / 1e9)


def _php(place: Path, requests: int) -> str:
    words = ["php", "-r", SESSION, str(place), str(requests)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


CUT_ALWAYS = ("--set=sequences.cut_off=[{truncate: {file: session}}]",)


def _cuts_always() -> bool:
    """Tell whether this PHP cuts a session's old data off before each write, as 8.2.36 does."""
    shown = subprocess.run(["php", "-r", "echo PHP_VERSION_ID;"], check=True, capture_output=True)
    return int(shown.stdout) >= 80236


def _timed(words: Sequence[str], place: Path) -> Measured:
    start_s = _shortest([words[0], "--version"])
    os.sync()
    before = asked_on(place)
    begin = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    return Measured(seconds, asked_since(place, before), aside_s=start_s)


def _shortest(words: Sequence[str]) -> float:
    """Return the seconds of a command that makes no files; the first time reads the program."""

    def once() -> float:
        begin = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    return min(once() for _ in range(STARTS))


def _lay_out(top: Path, manifest: str, part: int) -> None:
    """Make so many per cent of a tree that the scenarios know, with random content."""
    top.mkdir()
    for entry in part_of(load_manifest(MANIFESTS / f"{manifest}.tsv.xz"), part):
        if entry.type == "l":
            (top / entry.path).symlink_to(entry.link)
        elif entry.type == "d":
            (top / entry.path).mkdir(parents=True)
        else:
            (top / entry.path).write_bytes(POOL[: entry.size])
