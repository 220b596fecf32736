"""System calls that the os module has no exact form of. Paths start at the working directory.

Sources: openat2(2), renameat2(2), faccessat(2), getdents64(2), fallocate(2), fcntl(2).
"""

import ctypes
import errno
import fcntl
import mmap
import os
import struct

SYS_OPENAT2 = 437
SYS_GETDENTS64 = 217
AT_FDCWD = -100
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_BENEATH = 0x08
O_TMPFILE_BIT = 0o20000000
FS_IOC_FIEMAP = 0xC020660B
GETDENTS_BYTES = 32 * 1024
PAGE_BYTES = 4096
LOCKS = {"shared": fcntl.F_RDLCK, "exclusive": fcntl.F_WRLCK, "unlock": fcntl.F_UNLCK}
FLOCKS = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX, "unlock": fcntl.LOCK_UN}

# The first name that Linux's errno.h gives a number; Python prefers the second one of these.
NAMES = {errno.EDEADLK: "EDEADLK", errno.EOPNOTSUPP: "EOPNOTSUPP"}

libc = ctypes.CDLL(None, use_errno=True)


def errno_name(error: OSError) -> str:
    """Name the errno of a failed call as plans do."""
    number = error.errno or 0
    return NAMES.get(number) or errno.errorcode.get(number, "EUNKNOWN")


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def open_beneath(path: str, flags: int, mode: int) -> int:
    """Open a path that may not leave the working directory."""
    creates = flags & (os.O_CREAT | O_TMPFILE_BIT)
    how = struct.pack(
        "QQQ",
        flags | os.O_CLOEXEC,
        mode if creates else 0,
        RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    )
    name = os.fsencode(path)
    return _checked(libc.syscall(SYS_OPENAT2, AT_FDCWD, name, how, ctypes.c_size_t(len(how))))


def access(path: str, mode: int) -> None:
    """Ask for access; unlike os.access, say why not."""
    _checked(libc.access(os.fsencode(path), mode))


def rename(path: str, to: str, flags: int) -> None:
    """Rename, with renameat2's flags."""
    _checked(libc.renameat2(AT_FDCWD, os.fsencode(path), AT_FDCWD, os.fsencode(to), flags))


def getdents(descriptor: int) -> int:
    """Read one buffer of directory entries and return its length, 0 at the end."""
    buffer = ctypes.create_string_buffer(GETDENTS_BYTES)
    return _checked(libc.syscall(SYS_GETDENTS64, descriptor, buffer, GETDENTS_BYTES))


def fallocate(descriptor: int, mode: int, offset: int, size: int) -> None:
    """Allocate, punch or shift a range."""
    _checked(libc.fallocate(descriptor, mode, ctypes.c_int64(offset), ctypes.c_int64(size)))


def set_times(place: int | str, time_ns: int | None) -> None:
    """Set both times of a descriptor's file, or of what stands at a path (a link itself)."""
    follow = isinstance(place, int)
    if time_ns is None:
        os.utime(place, follow_symlinks=follow)
    else:
        os.utime(place, ns=(time_ns, time_ns), follow_symlinks=follow)


def flock(descriptor: int, kind: str, *, wait: bool) -> None:
    """Lock or unlock a whole file."""
    fcntl.flock(descriptor, FLOCKS[kind] | (0 if wait else fcntl.LOCK_NB))


def lock_range(descriptor: int, kind: str, first: int, size: int, *, wait: bool) -> None:
    """Lock or unlock a range for the open file description."""
    request = struct.pack("hhqqi4x", LOCKS[kind], os.SEEK_SET, first, size, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, request)


def sendfile(descriptor: int, size: int) -> int:
    """Send from the descriptor's offset to nowhere."""
    with open(os.devnull, "wb", buffering=0) as sink:  # noqa: PTH123 - no folder's path
        return os.sendfile(sink.fileno(), descriptor, None, size)


def fiemap(descriptor: int) -> None:
    """Have the extents of a file counted (struct fiemap of linux/fiemap.h without a list)."""
    fcntl.ioctl(descriptor, FS_IOC_FIEMAP, struct.pack("=QQIIII", 0, 2**64 - 1, 0, 0, 0, 0))


def mmap_read(descriptor: int) -> int:
    """Touch every page of a file and return its size."""
    size = os.fstat(descriptor).st_size
    if size:
        with mmap.mmap(descriptor, size, mmap.MAP_PRIVATE, mmap.PROT_READ) as pages:
            for at in range(0, size, PAGE_BYTES):
                _ = pages[at]
    return size
