"""A file system in user space that passes every call on, and fails or delays those it is told to.

A program of its own: it runs under the system's Python, which has the package python3-fusepy.

    faulty.py FOLDER MOUNT CONTROL

CONTROL is a file of JSON, looked at before each call: ``{"write": {"errno": 5, "delay_s": 0}}``;
``any`` stands for every call. It may be changed at any time. With ``{"queue": {"servers": 1,
"mean_s": 0.004, "law": "exponential"}}`` a call waits in one queue with all others of its name.
"""

import errno
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import fusepy as fuse  # type: ignore[import-untyped,import-not-found,unused-ignore] # Debian
from station import Bucket, Station  # type: ignore[import-not-found,unused-ignore] # beside it

STATUS = (
    *("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid"),
    "st_ino",
)
SPACE = (
    *("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag"),
    *("f_frsize", "f_namemax"),
)


class Faulty(fuse.Operations):  # type: ignore[misc,unused-ignore] # of an untyped package
    """The calls, by the names that libfuse has for them."""

    def __init__(self, folder: str, control: str) -> None:
        self._folder = folder
        self._control = Path(control)
        self._seen = -1
        self._faults: dict[str, Any] = {}
        self._stations: dict[str, Station] = {}

    def __call__(self, op: str, *arguments: Any) -> Any:  # noqa: ANN401 - any call
        if op not in {"init", "destroy"}:
            self._suffer(op, arguments)
        try:
            return getattr(self, op)(*arguments)
        except AttributeError:
            raise fuse.FuseOSError(errno.ENOSYS) from None

    def _suffer(self, op: str, arguments: tuple[Any, ...]) -> None:
        changed = self._control.stat().st_mtime_ns
        if changed != self._seen:
            self._seen, self._faults = changed, json.loads(self._control.read_text())
            self._stations = {}
        fault = self._faults.get(op) or self._faults.get("any")
        if fault:
            if "queue" in fault:
                self._station(op, **fault["queue"]).serve(_moved(op, arguments))
            time.sleep(fault.get("delay_s", 0))
            if fault.get("errno"):
                raise fuse.FuseOSError(fault["errno"])

    def _station(
        self,
        op: str,
        servers: int,
        mean_s: float,
        law: str,
        bucket: tuple[float, float, str] | None = None,
    ) -> Station:
        new = Station(servers, mean_s, law, bucket and Bucket(*bucket))
        return self._stations.setdefault(op, new)  # one for all threads

    def _at(self, path: str) -> str:
        return self._folder + path

    def getattr(self, path: str, _handle: int | None = None) -> dict[str, Any]:
        status = os.lstat(self._at(path))
        return {name: getattr(status, name) for name in STATUS}

    def statfs(self, path: str) -> dict[str, Any]:
        space = os.statvfs(self._at(path))
        return {name: getattr(space, name) for name in SPACE}

    def readdir(self, path: str, _handle: int) -> list[str]:
        return [".", "..", *os.listdir(self._at(path))]

    def access(self, path: str, mode: int) -> None:
        if not os.access(self._at(path), mode):
            raise fuse.FuseOSError(errno.EACCES)

    def open(self, path: str, flags: int) -> int:
        return os.open(self._at(path), flags)

    def create(self, path: str, mode: int, _info: object = None) -> int:
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, _path: str, size: int, offset: int, handle: int) -> bytes:
        return os.pread(handle, size, offset)

    def write(self, _path: str, content: bytes, offset: int, handle: int) -> int:
        return os.pwrite(handle, content, offset)

    def flush(self, _path: str, _handle: int) -> None:
        """Nothing is held back here."""

    def release(self, _path: str, handle: int) -> None:
        os.close(handle)

    def fsync(self, _path: str, _only_data: int, handle: int) -> None:
        os.fsync(handle)

    def truncate(self, path: str, length: int, _handle: int | None = None) -> None:
        os.truncate(self._at(path), length)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def chown(self, path: str, user: int, group: int) -> None:
        os.lchown(self._at(path), user, group)

    def utimens(self, path: str, times: tuple[float, float] | None = None) -> None:
        os.utime(self._at(path), times, follow_symlinks=False)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(self._at(path))

    def unlink(self, path: str) -> None:
        os.unlink(self._at(path))

    def rename(self, path: str, to: str) -> None:
        os.rename(self._at(path), self._at(to))

    def link(self, path: str, to: str) -> None:
        os.link(self._at(to), self._at(path))

    def symlink(self, path: str, target: str) -> None:
        os.symlink(target, self._at(path))

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))


def _moved(op: str, arguments: tuple[Any, ...]) -> int:
    """Return how many bytes a call asks for."""
    if op == "read":
        return int(arguments[1])
    return len(arguments[1]) if op == "write" else 0


if __name__ == "__main__":
    folder, mount, control = sys.argv[1:]
    fuse.FUSE(Faulty(folder, control), mount, foreground=True, nothreads=False, use_ino=True)
