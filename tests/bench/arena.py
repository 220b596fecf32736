"""File systems made for the occasion: a tmpfs, and a new ext4 on a loop device backed by memory.

The machine's own disk is left out of it: its free blocks, its journal and its other users would be
measured too.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (TemporaryDirectory makes the names in it)
EXT4_SIZE = "6G"


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
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=SHARED_MEMORY)))
        image, mount = folder / "image", folder / "mount"
        mount.mkdir()
        _run("truncate", "-s", EXT4_SIZE, str(image))
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        _run("mount", "-o", "loop,noatime", str(image), str(mount))
        stack.callback(_run, "umount", str(mount))
        yield mount


ARENAS = {"tmpfs": tmpfs, "ext4": ext4}


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
