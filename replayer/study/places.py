"""Where the targets of a study lie: one that goes on must find the mounts that it began on.

A mount that is not there any more leaves its mount point, an empty folder of another file system.
"""

from collections.abc import Sequence
from functools import partial

from replayer.measure import Frozen, MountFacts
from replayer.measure.facts import collect_facts
from replayer.run.targets import MountError, parse_targets
from replayer.run.watchdog import ask

__all__ = ["Place", "find_places", "refuse_other_places"]


class Place(Frozen):
    """What one path of a target lies on."""

    target: str
    path: str
    filesystem: str
    source: str
    mount_point: str
    root: str
    """Which part of the file system is mounted there, see proc_pid_mountinfo(5)."""

    def __str__(self) -> str:
        part = "" if self.root == "/" else f", {self.root} of it"
        return f"{self.filesystem} {self.source} on {self.mount_point}{part}"


def find_places(targets: Sequence[str]) -> tuple[Place, ...]:
    """Look at each path of each target, in bounded time.

    Raises:
        ReplayerError: One is not there or does not answer.
    """
    return tuple(
        _place(target.name, ask(path, partial(collect_facts, path)))
        for target in parse_targets(targets)
        for path in target.paths
    )


def _place(target: str, mount: MountFacts) -> Place:
    return Place(
        target=target,
        path=mount.path,
        filesystem=mount.filesystem,
        source=_source(mount),
        mount_point=mount.mount_point,
        root=mount.root,
    )


def _source(mount: MountFacts) -> str:
    """Return what is mounted; of a disk its size, as a kernel may name it anew at each start."""
    if mount.source.startswith("/dev/"):
        return f"of {mount.space.bytes_total:,} bytes"
    return mount.source


def refuse_other_places(then: Sequence[Place], now: Sequence[Place]) -> None:
    """Refuse to go on where a target lies on something else than when the study began.

    Raises:
        MountError: One does.
    """
    for before, after in zip(then, now, strict=True):
        if before != after:
            message = (
                f"target {before.target}: {after.path} is {after}, and was {before} when the study "
                "began"
            )
            raise MountError(message, hint="mount it as it was, or begin a study anew")
