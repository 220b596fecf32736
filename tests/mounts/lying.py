"""A file system in user space that passes calls on, and lies about data, by the names of files.

A program of its own: it runs under the system's Python, which has the package python3-fusepy.

    lying.py FOLDER MOUNT

The first word of a file's name says what becomes of its data when they are read:
``stale`` what was there before the last write · ``torn`` half of each 4 KiB of the last write, half
of what was before · ``moved`` two blocks of 4 KiB exchanged · ``foreign`` the data of a file whose
name begins with ``source`` · ``hole`` zeros · ``flipped`` one bit is another one · ``dropped`` its
last write never happens · ``gone`` it is removed when it is closed the second time · ``short`` it
is cut to 4 KiB then · any other: the truth. Nothing is cached.
"""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import fusepy as fuse  # type: ignore[import-untyped,import-not-found,unused-ignore] # Debian
from faulty import Faulty  # type: ignore[import-not-found,unused-ignore] # it lies beside

BLOCK = 4096


class Lying(Faulty):  # type: ignore[misc,unused-ignore] # of an untyped package
    """The calls that move data."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, os.devnull)
        self._before: dict[str, bytes] = {}
        self._other = b""
        self._writes: dict[str, int] = {}
        self._closed: dict[str, int] = {}

    def _suffer(self, op: str, arguments: tuple[Any, ...]) -> None:
        """Every call is made."""

    def write(self, path: str, content: bytes, offset: int, handle: int) -> int:
        kind = Path(path).name.partition("-")[0]
        self._writes[path] = self._writes.get(path, 0) + 1
        if kind == "dropped" and self._writes[path] > 1:
            return len(content)
        size = os.fstat(handle).st_size
        self._before[path] = _whole(self._at(path), size)
        written = os.pwrite(handle, content, offset)
        if kind == "source":
            self._other = content
        return written

    def release(self, path: str, handle: int) -> None:
        kind = Path(path).name.partition("-")[0]
        self._closed[path] = self._closed.get(path, 0) + 1
        os.close(handle)
        if self._closed[path] == 2 and kind == "gone":
            Path(self._at(path)).unlink()
        if self._closed[path] == 2 and kind == "short":
            os.truncate(self._at(path), BLOCK)

    def read(self, path: str, size: int, offset: int, handle: int) -> bytes:
        truth = os.pread(handle, size, offset)
        kind = Path(path).name.partition("-")[0]
        before = self._before.get(path, b"")[offset : offset + size]
        return _told(kind, truth, before, self._other[offset : offset + size])


def _whole(path: str, size: int) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(size)


def _told(kind: str, truth: bytes, before: bytes, other: bytes) -> bytes:
    pieces = zip(_halves(truth), _halves(before), strict=False)
    halves = (new if at % 2 == 0 else old for at, (new, old) in enumerate(pieces))
    lies = {
        "stale": before,
        "torn": b"".join(halves),
        "moved": truth[BLOCK : 2 * BLOCK] + truth[:BLOCK] + truth[2 * BLOCK :],
        "foreign": other[: len(truth)],
        "hole": bytes(len(truth)),
        "flipped": truth[:100] + bytes(each ^ 4 for each in truth[100:101]) + truth[101:],
    }
    return lies.get(kind) or truth


def _halves(content: bytes) -> list[bytes]:
    return [content[at : at + BLOCK // 2] for at in range(0, len(content), BLOCK // 2)]


if __name__ == "__main__":
    folder, mount = sys.argv[1:]
    fuse.FUSE(Lying(folder), mount, foreground=True, nothreads=True, use_ino=True, direct_io=True)
