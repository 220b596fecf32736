"""File systems of this machine: tmpfs, and ext4, xfs and btrfs on a file."""

from contextlib import ExitStack
from pathlib import Path

from tests.mounts.machine import call, mounted, need_root, needs

__all__ = ["btrfs", "ext4", "on_loop", "tmpfs", "xfs"]

MiB = 1 << 20


def tmpfs(stack: ExitStack, home: Path, size: str = "3g") -> tuple[Path, ...]:
    """Mount a tmpfs of a size."""
    need_root()
    return (mounted(stack, home / "mount", "-t", "tmpfs", "-o", f"size={size}", "none"),)


def on_loop(
    stack: ExitStack, home: Path, make: tuple[str, ...], size_bytes: int
) -> tuple[Path, ...]:
    """Make a file system on a sparse file, and mount it."""
    need_root()
    needs(make[0], {"mkfs.xfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs"}.get(make[0], "e2fsprogs"))
    home.mkdir(parents=True, exist_ok=True)
    image = home / "image"
    with image.open("wb") as file:
        file.truncate(size_bytes)
    call(*make, image)
    return (mounted(stack, home / "mount", "-o", "loop", image),)


def ext4(stack: ExitStack, home: Path) -> tuple[Path, ...]:
    """Mount a fresh ext4."""
    return on_loop(stack, home, ("mkfs.ext4", "-q", "-F"), 3072 * MiB)


def xfs(stack: ExitStack, home: Path) -> tuple[Path, ...]:
    """Mount a fresh xfs."""
    return on_loop(stack, home, ("mkfs.xfs", "-q", "-f"), 3072 * MiB)


def btrfs(stack: ExitStack, home: Path) -> tuple[Path, ...]:
    """Mount a fresh btrfs."""
    return on_loop(stack, home, ("mkfs.btrfs", "-q", "-f"), 3072 * MiB)
