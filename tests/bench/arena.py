"""File systems made for the occasion: a tmpfs, and new ones on a loop device in memory.

One of those is limited as a cloud volume is. The machine's own disk is left out unless it is asked
for: its free blocks, its journal and its other users are measured too.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (TemporaryDirectory makes the names in it)
EXT4_SIZE = "6G"
BUSY_S = 5
BLKIO = Path("/sys/fs/cgroup/blkio")
WORKERS = Path("/sys/devices/virtual/workqueue/cpumask")
"""Where work queues that are bound to no CPU are served: Documentation/core-api/workqueue.rst."""
_GP3_BYTES_S = 125 << 20
GP3 = {
    "read_iops": 3000,
    "write_iops": 3000,
    "read_bps": _GP3_BYTES_S,
    "write_bps": _GP3_BYTES_S,
}
"""Without more being paid for: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html"""


def has_loop_devices() -> bool:
    """Tell whether this user may make a loop device and mount it."""
    return os.geteuid() == 0 and Path("/dev/loop-control").exists()


@contextmanager
def tmpfs() -> Iterator[Path]:
    """Make a folder on the tmpfs that every Linux has."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=SHARED_MEMORY) as folder:
        yield Path(folder)


@contextmanager
def ext4() -> Iterator[Path]:
    """Make and mount a new ext4 whose image lies in memory (root only)."""
    with ExitStack() as stack:
        yield _mounted(stack, stack.enter_context(_device()))


@contextmanager
def limited() -> Iterator[Path]:
    """Make an ext4 on a device with the limits of a gp3 volume of EBS (root, blkio controller)."""
    with ExitStack() as stack:
        device = stack.enter_context(_device())
        number = Path(device).stat().st_rdev
        for name, most in GP3.items():
            place = BLKIO / f"blkio.throttle.{name}_device"
            limit = f"{os.major(number)}:{os.minor(number)} "
            place.write_text(f"{limit}{most}")
            stack.callback(place.write_text, f"{limit}0")
        yield _mounted(stack, device)


@contextmanager
def _device() -> Iterator[str]:
    """Make a loop device with an ext4 on it, in memory."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        image = Path(folder) / "image"
        _run("truncate", "-s", EXT4_SIZE, str(image))
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        made = ("losetup", "--find", "--show", str(image))
        device = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
        try:
            yield device
        finally:
            _run("losetup", "--detach", device)


def _mounted(stack: ExitStack, device: str) -> Path:
    mount = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=SHARED_MEMORY)))
    _run("mount", "-o", "noatime", device, str(mount))
    stack.callback(_unmount, mount)
    return mount


def _unmount(mount: Path) -> None:
    """Unmount; what was written in the last moment keeps it busy for some milliseconds."""
    begin = time.monotonic()
    while subprocess.run(["umount", str(mount)], check=False, stderr=subprocess.DEVNULL).returncode:
        if time.monotonic() - begin > BUSY_S:
            _run("umount", str(mount))
        time.sleep(BUSY_S / 100)


@contextmanager
def apart() -> Iterator[int | None]:
    """Keep the kernel's workers, which serve loop devices, away from one CPU; yields which.

    Where there are few CPUs the scheduler has an I/O waited for now on the CPU that serves it, now
    on another one, which makes it three times as long (measured: 18 and 60 us), and it does so by
    what went before, for one program more often than for another. Without the right to bind the
    workers, or with one CPU, nothing is done: None.
    """
    cpus = os.sched_getaffinity(0)
    own = max(cpus)
    others = cpus - {own}
    before = WORKERS.read_text() if WORKERS.exists() else ""
    if not others or not os.access(WORKERS, os.W_OK):
        yield None
        return
    WORKERS.write_text(_mask(others))
    try:
        yield own
    finally:
        WORKERS.write_text(before)


def _mask(cpus: set[int]) -> str:
    """Write CPUs as sysfs reads them: words of 32 bits, the highest first."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [f"{bits >> low & 0xFFFFFFFF:08x}" for low in range(0, bits.bit_length(), 32)]
    return ",".join(reversed(words))


@contextmanager
def disk() -> Iterator[Path]:
    """Make a folder under the current directory, on whatever disk that is."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as folder:
        yield Path(folder)


ARENAS = {"tmpfs": tmpfs, "ext4": ext4, "limited": limited, "disk": disk}


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
