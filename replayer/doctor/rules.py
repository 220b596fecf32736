"""Which rules a mount is held against, by its file system, and what they say of it.

The rules themselves are next door (``nfs``, ``amazon``, ``local``), each with its source. What a
client cannot see (the server's export, a volume's throughput mode) is asked about, never guessed.
"""

from collections.abc import Mapping

from replayer.doctor.advice import Advice, Options, Rule, Service
from replayer.doctor.amazon import AMAZON_RULES
from replayer.doctor.local import DISK_RULES, MEMORY_RULES, SSHFS_RULES
from replayer.doctor.nfs import NFS_RULES
from replayer.measure import MountFacts

__all__ = ["RULES", "advise", "service_of"]

_NFS = ("nfs", "nfs4")

RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(_NFS, (*NFS_RULES, *AMAZON_RULES)),
    **DISK_RULES,
    "tmpfs": MEMORY_RULES,
    "fuse.sshfs": SSHFS_RULES,
}
"""By the name that the mount table gives a file system."""

_ORDER = ("warning", "consider", "ask", "good")


def advise(mount: MountFacts) -> tuple[Advice, ...]:
    """Return all advice about a mount, warnings first."""
    options, service = _options_of(mount), service_of(mount)
    found = (rule(options, service) for rule in RULES.get(mount.filesystem, ()))
    said = [advice for advice in found if advice is not None]
    return tuple(sorted(said, key=lambda advice: _ORDER.index(advice.weight)))


def service_of(mount: MountFacts) -> Service:
    """Say whose server it is, as far as its name tells."""
    if mount.filesystem not in _NFS:
        return "other"
    host = mount.source.rpartition(":")[0].lower().rstrip(".")
    if ".efs." in host and ".amazonaws.com" in host:
        return "Amazon EFS"
    if ".fsx." in host and ".amazonaws.com" in host:
        return "Amazon FSx"
    return "NFS"


def _options_of(mount: MountFacts) -> Options:
    """Return the options of a mount and of its file system together."""
    pairs = (option.partition("=") for option in (*mount.options, *mount.super_options))
    return Options({name: value for name, _, value in pairs})
