"""Lists the files below the roots as they are before a recording begins.

A manifest as scenarios and the importer read it: tab-separated path, type (f, d, l; p, s, c, b are
special; u is a directory that may have had other names before, m a file that may not have been
there), size, mode and link, with a header line. A name with a tab or a line break is escaped as
in C, and the row then has a capital letter for its type. Directories wait in a file on the disk and
not in memory, so that a tree may have any number of them. What cannot be listed is counted, never
hidden.
"""

import lzma
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import IO, Literal, cast

from replayer.capture.roots import Root

__all__ = ["Listed", "Listing", "list_tree"]

HEADER = b"path\ttype\tsize\tmode\tlink\n"
PRESET = 1  # chosen: names compress well at any level, and a million files wait for this
TOLD_EVERY = 1000  # files between two calls of ``tell``

_TYPES = {
    stat.S_IFREG: b"f",
    stat.S_IFDIR: b"d",
    stat.S_IFLNK: b"l",
    stat.S_IFIFO: b"p",
    stat.S_IFSOCK: b"s",
    stat.S_IFCHR: b"c",
    stat.S_IFBLK: b"b",
}
_NOT_IN_A_LINE = re.compile(rb"[\t\n\r]")
_ESCAPES = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}
_TO_ESCAPE = re.compile(rb"[\\\t\n\r]")


@dataclass
class Listed:
    """What was found below one root.

    Attributes:
        entries: Lines of the manifest.
        excluded: Files and directories that a glob left out (not what lies below them).
        unreadable: Directories that could not be listed, and files that could not be looked at.
        examples: The first of those, a line each.
        changed: What has changed since a time, so that calls must tell how it was.
    """

    entries: int = 0
    excluded: int = 0
    unreadable: int = 0
    examples: list[str] = field(default_factory=list)
    changed: int = 0


@dataclass(frozen=True)
class Listing:
    """How trees are listed.

    Attributes:
        exclude: Globs: of names, or of paths below a root where they hold a slash.
        tell: Is told the number of entries now and then.
        unchanged_since_ns: What changed later (ctime, since 1970) is not said to have been so.
    """

    exclude: Sequence[str]
    tell: Callable[[int], None]
    unchanged_since_ns: int | None = None


def list_tree(roots: Sequence[Root], listing: Listing, file: Path) -> tuple[Listed, ...]:
    """Write the manifest of all roots into one xz file, and return what was found below each.

    Paths of an only root stand as they are, those of several behind the root's name, a colon and
    ``./``: names have no slash, so that none of them with a colon is taken for another root's.
    """
    skip = _matcher(listing.exclude)
    results: list[Listed] = []
    with lzma.open(file, "wb", preset=PRESET) as out, _spool(file) as spool:
        out.write(HEADER)
        for root in roots:
            walk = _Walk(root, "only" if len(roots) == 1 else "one of several", spool)
            walk.unchanged_since_ns = listing.unchanged_since_ns
            for count, line in enumerate(walk.lines(skip)):
                out.write(line)
                if count % TOLD_EVERY == 0:
                    listing.tell(sum(done.entries for done in results) + count)
            results.append(walk.listed)
    return tuple(results)


_EXAMPLES = 5


class _Walk:
    """One root, breadth first."""

    def __init__(
        self, root: Root, which: Literal["only", "one of several"], spool: IO[bytes]
    ) -> None:
        self.listed = Listed()
        self.unchanged_since_ns: int | None = None
        self._top = os.fsencode(root.absolute)
        self._prefix = os.fsencode(root.top) + b":"
        self._always = b"" if which == "only" else self._prefix
        self._spool = spool

    def lines(self, skip: Callable[[bytes], bool]) -> Iterator[bytes]:
        """Yield a line for each entry; parents come before children."""
        self._spool.seek(0)
        self._spool.truncate()
        yield from self._line(b".", self._top)
        read = 0
        pending: bytes | None = b""
        while pending is not None:
            for path in self._names(pending):
                if skip(path):
                    self.listed.excluded += 1
                else:
                    yield from self._line(path, self._top + b"/" + path)
            pending, read = self._next(read)

    def _names(self, directory: bytes) -> Iterator[bytes]:
        """Yield the paths of a directory's entries, as the directory gives them."""
        before = directory + b"/" if directory else b""
        try:
            with os.scandir(self._top + b"/" + directory) as entries:
                for entry in entries:
                    yield before + entry.name
        except OSError as error:
            self._unreadable(directory or b".", error)

    def _line(self, path: bytes, whole: bytes) -> Iterator[bytes]:
        try:
            found = os.lstat(whole)
            link = os.readlink(whole) if stat.S_ISLNK(found.st_mode) else b""  # noqa: PTH115
        except OSError as error:
            self._unreadable(path, error)
            return
        kind = _TYPES.get(stat.S_IFMT(found.st_mode), b"s")
        since_ns = self.unchanged_since_ns
        if since_ns is not None and found.st_ctime_ns >= since_ns:
            self.listed.changed += 1
            kind = b"u" if kind == b"d" else b"m"
        if kind in b"du" and path != b".":
            self._spool.seek(0, os.SEEK_END)
            self._spool.write(path + b"\0")
        self.listed.entries += 1
        mode = b"%o" % stat.S_IMODE(found.st_mode)
        name = self._name(path)
        if _NOT_IN_A_LINE.search(name) or _NOT_IN_A_LINE.search(link):
            name, kind, link = _escape(name), kind.upper(), _escape(link)
        yield b"\t".join((name, kind, b"%d" % found.st_size, mode, link)) + b"\n"

    def _name(self, path: bytes) -> bytes:
        """Return what stands for a path in the manifest."""
        apart = b"./" if path != b"." and (self._always or path.startswith(self._prefix)) else b""
        return self._always + apart + path

    def _next(self, at: int) -> tuple[bytes | None, int]:
        """Take the directory that waits at this place of the spool, and where the next one is."""
        self._spool.seek(at)
        text = self._spool.read(_LONGEST)
        path, end, _ = text.partition(b"\0")
        return (path, at + len(path) + 1) if end else (None, at)

    def _unreadable(self, path: bytes, error: OSError) -> None:
        self.listed.unreadable += 1
        self._example(path, error.strerror or str(error))

    def _example(self, path: bytes, reason: str) -> None:
        if len(self.listed.examples) < _EXAMPLES:
            self.listed.examples.append(f"{os.fsdecode(path)!r}: {reason}")


def _escape(name: bytes) -> bytes:
    return _TO_ESCAPE.sub(lambda found: _ESCAPES[found[0]], name)


_LONGEST = 8192  # two paths of PATH_MAX: one always ends within


def _spool(file: Path) -> IO[bytes]:
    return cast("IO[bytes]", tempfile.TemporaryFile(dir=file.parent))


def _matcher(globs: Sequence[str]) -> Callable[[bytes], bool]:
    """Return what says whether a path below a root is left out."""
    if not globs:
        return lambda _: False
    paths = [re.compile(translate(glob.strip("/"))) for glob in globs if "/" in glob]
    names = [re.compile(translate(glob)) for glob in globs if "/" not in glob]

    def skip(path: bytes) -> bool:
        text = os.fsdecode(path)
        name = text.rpartition("/")[2]
        return any(one.match(name) for one in names) or any(one.match(text) for one in paths)

    return skip
