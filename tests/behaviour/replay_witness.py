"""Makes one of every usual call below a directory, between two look-ups that mark begin and end.

argv[1]: the directory, empty.
"""

import contextlib
import os
import sys


def main() -> None:
    os.chdir(sys.argv[1])
    with contextlib.suppress(FileNotFoundError):
        os.lstat("begin")
    os.mkdir("a", 0o755)  # noqa: PTH102 - the calls are meant, one for one
    work_on(os.open("a/one", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640))
    os.rename("a/one", "a/two")  # noqa: PTH104
    os.link("a/two", "a/three")
    os.symlink("two", "a/link")  # noqa: PTH211
    os.readlink("a/link")  # noqa: PTH115
    os.stat("a/link")  # noqa: PTH116
    os.lstat("a/link")
    with contextlib.suppress(FileNotFoundError):
        os.lstat("a/one")
    os.access("a/two", os.R_OK)
    os.listdir("a")  # noqa: PTH208
    os.truncate("a/two", 3)
    os.chmod("a/two", 0o644)  # noqa: PTH101
    os.utime("a/two", (1, 2))
    for name in ("a/link", "a/two", "a/three"):
        os.unlink(name)  # noqa: PTH108
    os.rmdir("a")  # noqa: PTH106
    with contextlib.suppress(FileNotFoundError):
        os.lstat("end")


def work_on(file: int) -> None:
    os.write(file, b"x" * 5000)
    os.pwrite(file, b"y" * 10, 100)
    os.pwritev(file, [b"z" * 10], 0, os.RWF_DSYNC | os.RWF_APPEND)
    os.preadv(file, [bytearray(10)], 5005, os.RWF_HIPRI)
    os.lseek(file, 0, os.SEEK_SET)
    for _ in range(3):
        os.read(file, 4096)
    os.fstat(file)
    os.fsync(file)
    os.ftruncate(file, 10)
    os.fchmod(file, 0o600)
    os.close(file)


main()
