"""What was measured on: the machine, and each mount point as the kernel describes it.

Read from /proc and statvfs only; nothing is written and no file of a target is opened. How long a
mount has been there is not known to the kernel's tables, and so not said. Facts go into
``run.json``.
"""

import hashlib
import os
import platform
import resource
import sys
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from replayer.errors import ReplayerError
from replayer.measure.cpulist import PATTERN, format_cpu_list
from replayer.measure.frozen import Frozen
from replayer.measure.mountinfo import Mount, load_mountinfo, mount_of

__all__ = ["Limits", "MachineFacts", "MountFacts", "SpaceFacts", "collect_facts", "collect_machine"]


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
        raise ReplayerError(message, hint="a target is an existing directory") from error
    mount = mount_of(PurePosixPath(resolved), load_mountinfo())
    if mount is None:  # a root that was changed without /proc following: nothing to describe it by
        mount = Mount(0, "0:0", "/", "/", (), "unknown", "unknown", ())
    return _facts(resolved, mount, space)


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
