"""Block devices as targets: only those that the user named, and that nothing uses.

A device is read only, unless its name was given a second time as one whose data may be lost. Both
times it is looked at here before fio hears of it.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.fio.fence import find_confinement
from replayer.measure.facts import MountFacts, SpaceFacts
from replayer.measure.guarantee import Guarantee
from replayer.measure.mountinfo import load_mountinfo
from replayer.measure.run import Target as TargetFacts
from replayer.run.targets import MountError, TargetError, explain


@dataclass(frozen=True)
class Device:
    """A block device."""

    path: Path
    """Where it is itself: what the user wrote may be a link, and relative."""
    size_bytes: int
    expendable: bool
    """Whether its data may be overwritten."""


def parse_devices(words: Sequence[str], expendable: Sequence[str]) -> dict[str, Device]:
    """Parse ``[NAME=]/dev/…`` words and look at the devices.

    Raises:
        ReplayerError: One is no block device, in use, or named as expendable only.
    """
    found: dict[str, Device] = {}
    written: set[str] = set()
    for word in words:
        name, equals, place = word.rpartition("=")
        path = Path(place)
        label = name if equals else path.name
        if label in found:
            message = f"two devices are named {label!r}"
            raise ReplayerError(message, hint="give each device its own name: --device NAME=/dev/…")
        written.add(str(path))
        found[label] = _look_at(path, expendable=str(path) in expendable)
    for other in expendable:
        if other not in written:
            message = f"--i-will-lose-the-data {other}: is not given with --device"
            raise ReplayerError(message, hint=f"add --device {other}, written in the same way")
    return found


def describe_device(index: int, name: str, device: Device) -> TargetFacts:
    """Describe a device as a target."""
    number = device.path.stat().st_rdev
    facts = MountFacts(
        path=str(device.path),
        mount_point="-",
        filesystem="block device",
        source=str(device.path),
        options=("rw" if device.expendable else "ro",),
        super_options=(),
        device=f"{os.major(number)}:{os.minor(number)}",
        root="/",
        space=SpaceFacts(
            bytes_total=device.size_bytes,
            bytes_free=device.size_bytes,
            inodes_total=0,
            inodes_free=0,
            block_bytes=512,  # what sizes of devices are counted in, see blockdev(8)
            read_only=not device.expendable,
        ),
    )
    promise = Guarantee(
        write="client cache",
        close="client cache",
        fsync="device",
        direct="device, not flushed",
        says="a buffered write ends in the page cache. direct=1 and fsync reach the device",
        unseen="whether the device's own write cache survives a power cut",
        source="open(2), O_DIRECT; fsync(2)",
    )
    return TargetFacts(
        index=index, name=name, confinement=find_confinement(), mounts=(facts,), guarantee=promise
    )


def _look_at(path: Path, *, expendable: bool) -> Device:
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise TargetError(
            f"{path}: does not exist", hint="list the block devices of this machine with: lsblk"
        ) from error
    except OSError as error:
        raise explain(path, error) from error
    if not stat.S_ISBLK(found.st_mode):
        raise ReplayerError(f"{path}: is not a block device", hint="name folders with --target")
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    for mount in load_mountinfo():
        if mount.device == number:
            message = f"{path}: is mounted on {mount.point}"
            raise MountError(message, hint="measure a mounted device through --target")
    descriptor = claim_device(path)
    try:
        return Device(path.resolve(), os.lseek(descriptor, 0, os.SEEK_END), expendable)
    finally:
        os.close(descriptor)


def claim_device(path: Path) -> int:
    """Open a device that nothing uses, so that nothing else can mount it while it is open.

    open(2): O_EXCL fails with EBUSY for a device in use. That covers its partitions, swap, RAID and
    device mapper.

    Raises:
        MountError: It is in use.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        message = f"{path}: is in use or cannot be opened: {error.strerror}"
        hint = "a device that is mounted, used as swap or part of another device cannot be measured"
        raise MountError(message, hint=hint) from error
