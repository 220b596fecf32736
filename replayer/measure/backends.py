"""What lies behind a mount: a disk, a server, a bucket; and what two mounts have in common there.

Told from mount facts and /sys, which are read and never asked over a network. What they do not tell
(a server that exports this very disk, two volumes of one array) only a measurement shows.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from replayer.measure.facts import MountFacts
from replayer.measure.mountinfo import load_mountinfo

SYS = Path("/sys")
_NFS = frozenset({"nfs", "nfs4"})
_SHARES = frozenset({"cifs", "smb3", "smbfs"})
_LOOPBACK = ("127.", "[::1]", "::1", "localhost")
_NAMED_BY_SERVER = frozenset({"fuse.glusterfs", "fuse.sshfs"})
_NAMELESS = frozenset({"", "none", "fuse", "unknown", "mountpoint-s3", "s3fs", "blobfuse2"})
"""Sources that say which program it is, and not what it serves."""
_DEEPEST = 16  # chosen: loops on files on disks of mirrors need less


def find_shared(one: MountFacts, other: MountFacts, root: Path = SYS) -> str | None:
    """Say what two mounts share: their file system, a disk, a server or a bucket; None: nothing."""
    if one.device == other.device:
        return f"are on the same file system ({one.filesystem} at {one.mount_point})"
    for kind in ("disk", "server", "bucket", "pool"):
        common = _parts(one, kind, root) & _parts(other, kind, root)
        if common:
            return f"are on the same {kind} ({', '.join(sorted(common))})"
    return None


def _parts(mount: MountFacts, kind: str, root: Path) -> set[str]:
    """Return the disks, servers, buckets or pools behind a mount."""
    if kind == "disk":
        return set(disks_of(mount, root))
    if kind == "server":
        return set(_servers(mount))
    if kind == "bucket":
        return set(_buckets(mount))
    return {mount.source.partition("/")[0]} if mount.filesystem == "zfs" else set()


def disks_of(mount: MountFacts, root: Path = SYS) -> Iterator[str]:
    """Yield the disks behind a mount, by name; none of one that is in memory or on a server."""
    for number in _numbers(mount):
        yield from _disks(number, root, _DEEPEST)


def _numbers(mount: MountFacts) -> Iterator[str]:
    """Yield the devices (major:minor) of a mount: btrfs and overlays have numbers of their own."""
    yield mount.device
    if mount.source.startswith("/dev/"):
        yield from _number_of_device(mount.source)
    elif mount.source.startswith("/"):  # mergerfs, bindfs and others: a folder that they pass on
        yield from _number_of_file(mount.source)
    if mount.filesystem == "overlay":
        for option in mount.super_options:
            name, _, value = option.partition("=")
            if name == "upperdir":
                yield from _number_of_file(value)


def _number_of_device(path: str) -> Iterator[str]:
    try:
        number = os.stat(path).st_rdev  # noqa: PTH116 - as below
    except OSError:
        return
    yield f"{os.major(number)}:{os.minor(number)}"


def _number_of_file(path: str) -> Iterator[str]:
    """Yield the device of the file system of a file, and that of the mount it lies on."""
    try:
        number = os.stat(path).st_dev  # noqa: PTH116 - a path of the kernel's
    except OSError:
        return
    written = f"{os.major(number)}:{os.minor(number)}"
    yield written
    source = next((each.source for each in load_mountinfo() if each.device == written), "")
    if source.startswith("/dev/"):
        yield from _number_of_device(source)


def _disks(number: str, root: Path, depth: int) -> Iterator[str]:
    """Yield the disks of a block device: below partitions, mirrors, volumes and loops."""
    folder = root / "dev/block" / number
    if depth == 0 or not folder.exists():
        return
    place = folder.resolve()
    if (place / "partition").exists():
        place = place.parent
    below = [*_slaves(place), *_behind_loop(place)]
    if not below:
        yield place.name
    for each in below:
        yield from _disks(each, root, depth - 1)


def _slaves(place: Path) -> Iterator[str]:
    slaves = place / "slaves"
    for each in sorted(slaves.iterdir()) if slaves.is_dir() else ():
        yield (each / "dev").read_text().strip()


def _behind_loop(place: Path) -> Iterator[str]:
    file = place / "loop/backing_file"
    if file.exists():
        yield from _number_of_file(file.read_text().strip())


def _servers(mount: MountFacts) -> Iterator[str]:
    """Yield names and addresses of the servers of a mount."""
    options = dict(option.partition("=")[::2] for option in mount.super_options)
    if mount.filesystem in _NFS:
        port = f" port {options['port']}" if "port" in options else ""
        hosts = {mount.source.rpartition(":/")[0], options.get("addr", "")}
        # Tunnels (of EFS's mount helper) end here, each at a port of its own.
        yield from (f"{host}{port if _is_here(host) else ''}" for host in hosts if host)
    elif mount.filesystem in _SHARES:
        yield from filter(None, (mount.source.strip("/").partition("/")[0], options.get("addr")))
    elif mount.filesystem == "ceph":
        yield from (each for each in mount.source.rpartition(":/")[0].split(",") if each)
    elif mount.filesystem in _NAMED_BY_SERVER:
        yield mount.source.partition(":")[0].rpartition("@")[2]


def _is_here(host: str) -> bool:
    return host.startswith(_LOOPBACK)


def _buckets(mount: MountFacts) -> Iterator[str]:
    """Yield what a daemon says of the place that it serves, without the folder in it."""
    kind, _, program = mount.filesystem.partition(".")
    source = mount.source
    is_named = source not in _NAMELESS | {program} and not source.startswith("/")
    if kind == "fuse" and is_named and mount.filesystem not in _NAMED_BY_SERVER:
        yield source.partition("://")[2].partition("/")[0] or source.partition("/")[0]
