"""How processes name the files of the roots: one in a container has a root and mounts of its own.

A name of a file means something only to those that have the same mounts. Names of other mounts get
the namespace in front, as ``/proc/4711/ns/mnt/srv/www``: no two of them are taken for one another.
Nothing is looked up below these, and no mount is asked: the tables of mounts tell it all.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from replayer.capture.processes import PROC, ProcessState, namespace_of
from replayer.capture.roots import Root
from replayer.measure.mountinfo import Mount, load_mountinfo, mount_of, parse_mountinfo

__all__ = ["View", "Views", "views_of"]

_TOP = PurePosixPath("/")


@dataclass(frozen=True)
class View:
    """A process that has another root or other mounts.

    Attributes:
        task: Its number.
        root: Where its absolute paths begin.
        mounts: Where names begin that the kernel shows of it; None if it has our mounts.
    """

    task: int
    root: Path
    mounts: Path | None


@dataclass
class Views:
    """What all names mean.

    Attributes:
        views: The processes that have another root or other mounts.
        directories: Where each process works.
        aliases: Other names of roots, each with its root.
        covers: Names below these on which something else is mounted.
        names: The roots as processes name them.
    """

    views: list[View] = field(default_factory=list)
    directories: list[tuple[int, Path]] = field(default_factory=list)
    aliases: dict[Path, Path] = field(default_factory=dict)
    covers: list[Path] = field(default_factory=list)
    names: list[Path] = field(default_factory=list)


def views_of(roots: Sequence[Root], states: Iterable[ProcessState]) -> Views:
    """Return how processes name the files of roots."""
    mine, own = namespace_of(os.getpid()), load_mountinfo()
    found = Views(
        aliases={root.alias: root.absolute for root in roots if root.alias},
        names=[root.absolute for root in roots],
    )
    prefixes: dict[str, Path] = {}
    for state in states:
        prefix = None
        if state.namespace not in ("", mine):
            prefix = prefixes.setdefault(state.namespace, PROC / str(state.pid) / "ns/mnt")
        begin = _below(prefix or Path("/"), state.root)
        if begin != Path("/"):
            found.views.append(View(state.pid, begin, prefix))
        found.directories.append((state.pid, _below(prefix or Path("/"), state.cwd)))
        _add_names(found, roots, _Table(begin, parse_mountinfo(state.mountinfo), own))
        if prefix is not None and state.root != "/":
            _add_unlisted(found, roots, prefix, state.root)
    found.aliases = {name: root for name, root in found.aliases.items() if name != root}
    found.names = list(dict.fromkeys([*found.names, *found.aliases]))
    return found


@dataclass(frozen=True)
class _Table:
    """The mounts of a process, below where its paths begin, and ours."""

    begin: Path
    mounts: Sequence[Mount]
    own: Sequence[Mount]


def _add_names(found: Views, roots: Sequence[Root], table: _Table) -> None:
    for root in roots:
        for point in _points_of(root.absolute, table):
            found.names.append(Path(point))
            name = _below(table.begin, point)
            if found.aliases.setdefault(name, root.absolute) == root.absolute:
                covers = (_below(table.begin, it) for it in _covered(root.absolute, point, table))
                found.covers.extend(it for it in covers if it not in found.covers)


def _add_unlisted(found: Views, roots: Sequence[Root], prefix: Path, top: str) -> None:
    """Add roots below a root that is no mount: no table of mounts shows where that lies."""
    for root in roots:
        if root.absolute.is_relative_to(top):
            found.names.append(Path("/") / root.absolute.relative_to(top))
            found.aliases.setdefault(_below(prefix, str(root.absolute)), root.absolute)


def _points_of(absolute: Path, table: _Table) -> Iterator[PurePosixPath]:
    """Yield the names by which a process has a directory of ours."""
    here = mount_of(PurePosixPath(absolute), table.own)
    if here is None:
        return
    inside = PurePosixPath(here.root) / absolute.relative_to(here.point)
    for mount in table.mounts:
        if mount.device == here.device and inside.is_relative_to(mount.root):
            name = PurePosixPath(mount.point) / inside.relative_to(mount.root)
            if mount_of(name, table.mounts) == mount:  # no other one is mounted over it
                yield name


def _covered(absolute: Path, point: PurePosixPath, table: _Table) -> Iterator[PurePosixPath]:
    """Yield names below a root on which a process has other files than we have."""
    for mount in table.mounts:
        name = PurePosixPath(mount.point)
        if name == point or not name.is_relative_to(point):
            continue
        ours = PurePosixPath(absolute) / name.relative_to(point)
        here = mount_of(ours, table.own)
        is_same = (
            here is not None
            and here.device == mount.device
            and PurePosixPath(here.root) / ours.relative_to(here.point) == PurePosixPath(mount.root)
        )
        if not is_same:
            yield name


def _below(begin: Path, name: str | PurePosixPath) -> Path:
    return begin / PurePosixPath(name).relative_to(_TOP) if str(name).startswith("/") else begin
