"""Parsing /proc/self/mountinfo and mountstats: which mount a path lies on, and how it is mounted.

Text in, facts out: nothing here looks at the mount itself. Format: proc_pid_mountinfo(5); that of
mountstats is in the kernel's fs/proc_namespace.c and fs/nfs/super.c.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOUNTINFO = Path("/proc/self/mountinfo")
MOUNTSTATS = Path("/proc/self/mountstats")

_OCTAL = re.compile(r"\\([0-7]{3})")
_LEAST_FIELDS = 6


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    identifier: int
    """The mount id; a later mount on the same point has a later line."""
    device: str
    """``major:minor`` of the file system (st_dev)."""
    root: str
    """What of the file system is seen at ``point`` (``/`` unless bind-mounted)."""
    point: str
    options: tuple[str, ...]
    """Per-mount options, such as ``rw`` and ``noatime``."""
    kind: str
    """The file system's type, such as ``nfs4`` or ``fuse.sshfs``."""
    source: str
    """Server and path, device, or whatever the file system says."""
    super_options: tuple[str, ...]
    """Options of the file system itself, such as ``vers=4.2`` and ``sync``."""


def load_mountinfo() -> tuple[Mount, ...]:
    """Read what this process has mounted."""
    return parse_mountinfo(os.fsdecode(MOUNTINFO.read_bytes()))


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Parse the whole table; lines that are not understood are left out.

    Names may hold whatever else ends a line for Python: the kernel escapes line feeds alone.
    """
    return tuple(found for line in text.split("\n") if (found := _parse_line(line)) is not None)


def load_mountstats(file: Path = MOUNTSTATS) -> dict[str, list[str]]:
    """Return what each mount counts, in lines, by mount point; nothing where that is not told."""
    found: dict[str, list[str]] = {}
    try:
        lines = os.fsdecode(file.read_bytes()).split("\n")
    except OSError:
        return found
    own: list[str] = []
    for line in lines:
        if line.startswith("device "):
            # device SOURCE mounted on POINT with fstype nfs4 statvers=1.1
            point = line.partition(" mounted on ")[2].rpartition(" with fstype ")[0]
            own = found[_plain(point)] = []  # the last one mounted there covers the others
        else:
            own.append(line)
    return found


def mount_age(lines: Iterable[str]) -> int | None:
    """Return for how many seconds something is mounted, as mountstats tells of NFS."""
    ages = (line.split()[1] for line in lines if line.startswith("\tage:\t"))
    return next((int(age) for age in ages if age.isdigit()), None)


def mount_of(path: PurePosixPath, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount that a resolved path lies on: the last one on the longest mount point."""
    holding = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(
        reversed(holding), key=lambda mount: len(PurePosixPath(mount.point).parts), default=None
    )


def _parse_line(line: str) -> Mount | None:
    fields = line.split(" ")
    if "-" not in fields[_LEAST_FIELDS:]:
        return None
    dash = fields.index("-", _LEAST_FIELDS)  # optional fields end with a single hyphen
    kind, source, super_options = [*fields[dash + 1 : dash + 4], "", "", ""][:3]
    if not fields[0].isdigit() or not kind:
        return None
    return Mount(
        identifier=int(fields[0]),
        device=fields[2],
        root=_plain(fields[3]),
        point=_plain(fields[4]),
        options=_options(fields[5]),
        kind=_plain(kind),
        source=_plain(source),
        super_options=_options(super_options),
    )


def _options(text: str) -> tuple[str, ...]:
    return tuple(_plain(option) for option in text.split(",") if option)


def _plain(text: str) -> str:
    """Undo the octal escapes of blanks, tabs, newlines, backslashes and hashes."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
