"""ZFS in user space (zfs-fuse) on a file."""

import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.mounts.machine import CannotError, call, need_root, needs, wait_for

__all__ = ["limited_zfs", "zfs"]

SIZE_BYTES = 4 << 30
POOL = "replayertests"


def zfs(stack: ExitStack, home: Path) -> tuple[Path, ...]:
    """Make a pool and mount its file system."""
    return (_pool(stack, home),)


def limited_zfs(stack: ExitStack, home: Path, quota: int) -> Path:
    """Mount a file system that holds so many bytes at most: in our pool, or in one made for it."""
    needs("zfs", "zfs-fuse")
    if not _works("zfs", "list", POOL):
        _pool(stack, home / "pool")
    name, mount = f"{POOL}/limited", home / "limited"
    call("zfs", "create", "-o", f"quota={quota}", "-o", f"mountpoint={mount}", name)
    stack.callback(_works, "zfs", "destroy", "-f", name)
    wait_for(mount.is_mount, "the file system is mounted")
    return mount


def _pool(stack: ExitStack, home: Path) -> Path:
    """Make a pool on a sparse file; its daemon ends with the stack."""
    need_root()
    needs("zfs-fuse", "zfs-fuse")
    home.mkdir(parents=True, exist_ok=True)
    if _works("zpool", "list"):
        raise CannotError("a zfs-fuse daemon that is not ours runs")
    daemon = subprocess.Popen(["zfs-fuse", "--no-daemon"], stdin=subprocess.DEVNULL)
    stack.callback(_end, daemon)
    wait_for(lambda: _works("zpool", "list"), "zfs-fuse answers")
    device = home / "device"
    with device.open("wb") as file:
        file.truncate(SIZE_BYTES)
    mount = home / "mount"
    call("zpool", "create", "-o", "cachefile=none", "-m", mount, POOL, device)
    stack.callback(_works, "zpool", "destroy", "-f", POOL)
    wait_for(mount.is_mount, "the pool is mounted")
    return mount


def _works(*words: str) -> bool:
    with suppress(CannotError):
        call(*words)
        return True
    return False


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    daemon.wait()
