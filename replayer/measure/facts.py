"""What was measured on: the machine, and each mount point as the kernel describes it.

Read from /proc, statvfs and statfs only; nothing is written and no file of a target is opened.
Facts go into ``run.json``.
"""

import ctypes
import hashlib
import os
import platform
import resource
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from replayer.errors import ReplayerError
from replayer.measure.mountinfo import Mount, load_mountinfo, load_mountstats, mount_age, mount_of


class Frozen(BaseModel):
    """A validated value that does not change; unknown keys are refused, in files as in code."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,  # most commands use few of the models that they import
    )

    @classmethod
    def made_of(cls, found: Mapping[str, Any], **more: object) -> Self:
        """Make one of what was found for its fields, which may be more, and of the rest."""
        known = {name: value for name, value in found.items() if name in cls.model_fields}
        return cls.model_validate({**known, **more})


PATTERN = r"^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$"
"""Five digits: kernels are built for 8192 CPUs at most (CONFIG_NR_CPUS of x86)."""


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Write numbers of CPUs as ranges, in their order."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def parse_cpu_list(text: str) -> frozenset[int]:
    """Read what ``PATTERN`` matches."""
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


class SpaceFacts(Frozen):
    """What statvfs(3) says of a file system."""

    bytes_total: int
    bytes_free: int
    """Available to this user."""
    inodes_total: int
    """0 where the file system does not count them."""
    inodes_free: int
    block_bytes: int
    read_only: bool


class MountFacts(Frozen):
    """A path and the mount it lies on, as proc_pid_mountinfo(5) describes it."""

    path: str
    """The path that was given, made absolute."""
    mount_point: str
    filesystem: str
    """The file system's type, such as ``ext4``, ``nfs4`` or ``fuse.sshfs``."""
    source: str
    """A device, or server and path."""
    options: tuple[str, ...]
    """Of this mount."""
    super_options: tuple[str, ...]
    """Of the file system."""
    device: str
    """``major:minor``: equal for two mount points of one file system."""
    root: str
    """What of the file system is mounted here; ``/`` unless a part of it is bound."""
    space: SpaceFacts
    mounted_s: int | None = None
    """For how long it is mounted; null: the kernel tells that of NFS alone."""

    @property
    def all_options(self) -> tuple[str, ...]:
        """Those of the mount and of the file system, each once."""
        return tuple(dict.fromkeys((*self.options, *self.super_options)))


class Limits(Frozen):
    """Soft limits of the process, see getrlimit(2); null: unlimited."""

    open_files: int | None
    processes: int | None
    file_bytes: int | None
    address_space_bytes: int | None


class MachineFacts(Frozen):
    """The client that the run used."""

    host: str
    """The host's name as a short hash: tells two machines apart without naming them."""
    kernel: str
    architecture: str
    cpus: int
    """CPUs that this process may use."""
    cpu_list: Annotated[str, Field(pattern=PATTERN)] | None = None
    """Which these are, as cpuset(7) lists them: ``0-3,8``; null: it was not written down."""
    memory_bytes: int
    container: bool
    """Whether signs of a container were found; absent signs prove nothing."""
    python: str
    replayer: str
    limits: Limits


def collect_facts(path: Path) -> MountFacts:
    """Describe the mount that a path lies on.

    Raises:
        ReplayerError: The path does not exist or cannot be asked.
    """
    try:
        resolved = path.resolve(strict=True)
        space = _space(resolved)
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        raise ReplayerError(message, hint="a target must be an existing folder") from error
    mount = mount_of(PurePosixPath(resolved), load_mountinfo()) or _untold(resolved)
    return _facts(resolved, mount, space)


def filesystem_of(path: Path, mounts: Iterable[Mount]) -> str:
    """Return the type of the file system that a resolved path lies on; ``unknown`` if it is."""
    mount = mount_of(PurePosixPath(path), mounts)
    return _numbered(path) if mount is None else mount.kind


def collect_machine() -> MachineFacts:
    """Describe this machine and process."""
    cpus = os.sched_getaffinity(0)
    return MachineFacts(
        host=hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        kernel=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpus=len(cpus),
        cpu_list=format_cpu_list(cpus),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        container=_in_container(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        replayer=_version(),
        limits=Limits(
            open_files=_limit(resource.RLIMIT_NOFILE),
            processes=_limit(resource.RLIMIT_NPROC),
            file_bytes=_limit(resource.RLIMIT_FSIZE),
            address_space_bytes=_limit(resource.RLIMIT_AS),
        ),
    )


def _untold(path: Path) -> Mount:
    """Describe a mount that is not in the table: after chroot(2) the root's own often is not."""
    flags, device = os.statvfs(path).f_flag, path.stat().st_dev
    options = tuple(name for flag, name in _FLAGS.items() if flags & flag)
    return Mount(
        identifier=0,
        device=f"{os.major(device)}:{os.minor(device)}",
        root="/",
        point="/",
        options=("ro" if flags & os.ST_RDONLY else "rw", *options),
        kind=_numbered(path),
        source="unknown",
        super_options=(),
    )


def _numbered(path: Path) -> str:
    """Return the type of a file system by the number that statfs(2) has for it."""
    found = (ctypes.c_long * 64)()  # the number comes first, and the rest takes less than that
    if _LIBC.statfs(os.fsencode(path), found):
        return "unknown"
    return _TYPES.get(found[0] & 0xFFFFFFFF, "unknown")


_LIBC = ctypes.CDLL(None)
_FLAGS = {
    os.ST_NOSUID: "nosuid",
    os.ST_NODEV: "nodev",
    os.ST_NOEXEC: "noexec",
    os.ST_SYNCHRONOUS: "sync",
    os.ST_NOATIME: "noatime",
    os.ST_NODIRATIME: "nodiratime",
    os.ST_RELATIME: "relatime",
}
"""Options of a mount by what statvfs(3) says of them."""
_TYPES = {
    0xEF53: "ext4",  # of ext2 and ext3 too, which the same driver mounts
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x794C7630: "overlay",
    0x65735546: "fuse",
    0x6969: "nfs",
    0xFF534D42: "cifs",
    0xFE534D42: "cifs",
    0x00C36400: "ceph",
    0x01021997: "9p",
    0x0BD00BD0: "lustre",
    0x01161970: "gfs2",
    0x7461636F: "ocfs2",
    0x5346414F: "afs",
    0x4D44: "vfat",
    0x2011BAB0: "exfat",
    0x7366746E: "ntfs3",
    0x3153464A: "jfs",
    0x52654973: "reiserfs",
    0x73717368: "squashfs",
    0xE0F5E1E2: "erofs",
    0x9660: "iso9660",
    0x9FA0: "proc",
    0x62656572: "sysfs",
    0x1CD1: "devpts",
    0x0027E0EB: "cgroup",
    0x63677270: "cgroup2",
    0x64626720: "debugfs",
    0x74726163: "tracefs",
    0x73636673: "securityfs",
}
"""Names as in the mount table by the numbers of statfs(2) and linux/magic.h."""


def _facts(path: Path, mount: Mount, space: SpaceFacts) -> MountFacts:
    return MountFacts(
        path=_printable(str(path)),
        mount_point=_printable(mount.point),
        filesystem=mount.kind,
        source=_printable(mount.source),
        options=tuple(map(_printable, mount.options)),
        super_options=tuple(_without_secret(_printable(item)) for item in mount.super_options),
        device=mount.device,
        root=_printable(mount.root),
        space=space,
        mounted_s=mount_age(load_mountstats().get(mount.point, ())),
    )


def _space(path: Path) -> SpaceFacts:
    found = os.statvfs(path)
    return SpaceFacts(
        bytes_total=found.f_blocks * found.f_frsize,
        bytes_free=found.f_bavail * found.f_frsize,
        inodes_total=found.f_files,
        inodes_free=found.f_favail,
        block_bytes=found.f_frsize,
        read_only=bool(found.f_flag & os.ST_RDONLY),
    )


def _printable(text: str) -> str:
    """Return text that JSON can hold: bytes that are not UTF-8 become replacement marks."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _without_secret(option: str) -> str:
    """Hide what a run folder must not pass on; kernels hide passwords, daemons may not."""
    name, equals, _ = option.partition("=")
    return f"{name}=…" if equals and name.lower() in _SECRET else option


_SECRET = frozenset({"password", "password2", "pass", "passwd", "secret", "passwd_file"})


def _limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _in_container() -> bool:
    # Docker and Podman leave a file, LXC and systemd-nspawn a variable (CONTAINER_INTERFACE).
    signs = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
    if any(Path(sign).exists() for sign in signs):
        return True
    return "container" in os.environ or "KUBERNETES_SERVICE_HOST" in os.environ


def _version() -> str:
    try:
        return metadata.version("replayer")
    except metadata.PackageNotFoundError:  # run from a source tree that was not installed
        return f"source on Python {sys.version_info.major}.{sys.version_info.minor}"
