"""What an acknowledged write, close or fsync means on a mount, from its type and options alone.

A rate of writes is a figure about this guarantee as much as about a disk: two targets with
different guarantees are not the same race. What a client cannot see (the server's export options, a
volume's settings) is said to be unseen.
"""

from collections.abc import Callable
from typing import Literal

from replayer.measure.facts import Frozen, MountFacts

Place = Literal["memory", "client cache", "daemon", "server", "device", "unknown"]
DirectPlace = Literal[Place, "device, not flushed", "server, not flushed"]
Writing = Literal["buffered", "flushed", "direct", "synchronous"]
"""How files are written: into caches; with each flush an op of its own (fsync); past the page cache
(O_DIRECT); so that each write waits until it is stored (O_SYNC, O_DSYNC)."""


class Guarantee(Frozen):
    """Where acknowledged data is, by the call that was acknowledged."""

    write: Place
    close: Place
    fsync: Place
    direct: DirectPlace = "unknown"
    """Of a write past the page cache (O_DIRECT); most file systems send it on and flush nothing."""
    says: str
    """The same in a sentence."""
    unseen: str | None
    """What decides about it, but cannot be seen from this client."""
    source: str
    """Where this is written down."""


def place_of(promise: Guarantee, writing: Writing) -> str:
    """Return where the data of an acknowledged write is."""
    return {
        "buffered": promise.write,
        "flushed": f"{promise.write}, fsync separate",
        "direct": promise.direct,
        "synchronous": promise.fsync,
    }[writing]


def guarantee_of(mount: MountFacts) -> Guarantee:
    """Say what this mount promises; an unknown type promises nothing that is known."""
    rule = _RULES.get(mount.filesystem)
    if rule is not None:
        return rule(frozenset(mount.all_options))
    if mount.filesystem.split(".")[0] in {"fuse", "fuseblk"}:
        return _fuse()
    return _UNKNOWN


def _memory(_: frozenset[str]) -> Guarantee:
    return Guarantee(
        write="memory",
        close="memory",
        fsync="memory",
        direct="memory",
        says="data is only in memory (and swap). fsync does nothing, and a restart loses the data",
        unseen=None,
        source="tmpfs(5)",
    )


def _disk(options: frozenset[str]) -> Guarantee:
    if "sync" in options:
        return Guarantee(
            write="device",
            close="device",
            fsync="device",
            direct="device",
            says="mounted sync: each write waits for the device",
            unseen=_DEVICE,
            source="mount(8), option sync",
        )
    if options & {"nobarrier", "barrier=0"}:
        return Guarantee(
            write="client cache",
            close="client cache",
            fsync="device",
            direct="device, not flushed",
            says="a write and a close end in the page cache. fsync reaches the device, but "
            "without barriers the device cache is not flushed: a power cut may lose fsynced "
            "data",
            unseen=_DEVICE,
            source="write(2), fsync(2); on barriers ext4(5), btrfs(5), and for f2fs the kernel's "
            "documentation",
        )
    return Guarantee(
        write="client cache",
        close="client cache",
        fsync="device",
        direct="device, not flushed",
        says="a write and a close end in the page cache; only fsync waits for the device",
        unseen=_DEVICE,
        source="write(2), close(2), fsync(2)",
    )


def _nfs(options: frozenset[str]) -> Guarantee:
    """Say what NFS promises.

    A direct write is committed before it returns, as by fsync: see the head of fs/nfs/direct.c.
    """
    if "sync" in options:
        return Guarantee(
            write="server",
            close="server",
            fsync="server",
            direct="server",
            says="mounted sync: each write waits until the server has it",
            unseen=_EXPORT,
            source="nfs(5), 'The sync mount option'; exports(5)",
        )
    held = "; with an NFSv4 write delegation close may not wait" if _is_v4(options) else ""
    return Guarantee(
        write="client cache",
        close="server",
        fsync="server",
        direct="server",
        says="a write ends in this client's cache; close and fsync wait until the server has it "
        f"(close-to-open){held}. A full server may be reported only then",
        unseen=_EXPORT,
        source="nfs(5), 'Close-to-open cache consistency' and 'The sync mount option'; exports(5)",
    )


def _is_v4(options: frozenset[str]) -> bool:
    return any(option.startswith(("vers=4", "nfsvers=4")) for option in options)


def _smb(options: frozenset[str]) -> Guarantee:
    cached = "cache=none" not in options and "sync" not in options
    return Guarantee(
        write="client cache" if cached else "server",
        close="server",
        fsync="server",
        direct="server, not flushed",
        says=(
            "a write may end in this client's cache while it holds a lease"
            if cached
            else "each write waits for the server"
        )
        + "; close waits until the server has it"
        + (
            "; fsync does not make the server flush (nostrictsync)"
            if "nostrictsync" in options
            else ""
        ),
        unseen="whether the server has it on disk when it answers (Samba: strict sync, sync "
        "always)",
        source="mount.cifs(8), options cache and nostrictsync; smb.conf(5)",
    )


def _sshfs(_: frozenset[str]) -> Guarantee:
    return Guarantee(
        write="daemon",
        close="server",
        fsync="server",
        direct="daemon",
        says="a write ends in the sshfs process. close waits until the SFTP server has answered "
        "all writes. fsync reaches the server's disk only if the server offers "
        "fsync@openssh.com",
        unseen="sshfs's own options (sshfs_sync), and the SFTP server's extensions",
        source="sshfs(1), option sshfs_sync; OpenSSH PROTOCOL, section 4.6",
    )


def _gluster(_: frozenset[str]) -> Guarantee:
    return Guarantee(
        write="daemon",
        close="daemon",
        fsync="server",
        direct="daemon",
        says="with the default volume options, a write ends in the client process (write-behind) "
        "and close does not wait for the bricks (flush-behind). fsync does",
        unseen="the volume's options performance.write-behind and performance.flush-behind",
        source="Gluster documentation, write-behind translator; gluster volume get VOLUME all",
    )


def _cluster(_: frozenset[str]) -> Guarantee:
    return Guarantee(
        write="client cache",
        close="client cache",
        fsync="server",
        direct="server, not flushed",
        says="a write and a close end in this client's cache while it holds the lock or "
        "capability. fsync waits until the servers have it",
        unseen="the servers' replication and write caches",
        source="mount.ceph(8); lustre manual, 'Lustre file system'; fsync(2)",
    )


def _passed_through(options: frozenset[str]) -> Guarantee:
    cached = bool(options & {"cache=loose", "cache=fscache", "cache=writeback"})
    return Guarantee(
        write="client cache" if cached else "daemon",
        close="client cache" if cached else "daemon",
        fsync="unknown",
        says="the host of this machine serves it: a write ends in the host's page cache"
        + (
            ", or in this machine's ("
            + ", ".join(sorted(o for o in options if o.startswith("cache=")))
            + ")"
            if cached
            else ""
        ),
        unseen="the host's file system, and whether it honours fsync",
        source="kernel documentation, filesystems/9p and filesystems/virtiofs",
    )


def _overlay(options: frozenset[str]) -> Guarantee:
    volatile = "volatile" in options
    return Guarantee(
        write="client cache",
        close="client cache",
        fsync="memory" if volatile else "device",
        direct="device, not flushed",
        says="mounted volatile: fsync does nothing"
        if volatile
        else (
            "as for the file system of the upper layer: a write and a close end in the page "
            "cache, fsync waits for its device"
        ),
        unseen="the file system of the upper layer (see upperdir)",
        source="kernel documentation, filesystems/overlayfs",
    )


def _zfs(_: frozenset[str]) -> Guarantee:
    """Say what ZFS promises.

    A direct write, where OpenZFS has it (2.3), is found after a crash only if its transaction group
    was committed: see zfsprops(7), property direct.
    """
    return Guarantee(
        write="client cache",
        close="client cache",
        fsync="device",
        direct="client cache",
        says="a write and a close end in memory (ARC). fsync waits for the intent log, unless the "
        "dataset has sync=disabled",
        unseen="the dataset's property sync",
        source="zfsprops(7), property sync",
    )


def _fuse() -> Guarantee:
    return Guarantee(
        write="daemon",
        close="daemon",
        fsync="daemon",
        direct="daemon",
        says="a process in user space answers each call. Whether the data is stored by then "
        "depends on this process",
        unseen="everything behind that process",
        source="fuse(4)",
    )


_DEVICE = "whether the device's own write cache survives a power cut"
_EXPORT = "whether the server has it on disk when it answers: its export may be sync or async"

_UNKNOWN = Guarantee(
    write="unknown",
    close="unknown",
    fsync="unknown",
    says="unknown type of file system: assume that only fsync stores data",
    unseen="where acknowledged data is",
    source="write(2), close(2), fsync(2)",
)

_ON_DISKS = "ext2 ext3 ext4 xfs btrfs f2fs bcachefs jfs reiserfs vfat exfat ntfs3"

_RULES: dict[str, Callable[[frozenset[str]], Guarantee]] = {
    **dict.fromkeys(("tmpfs", "ramfs", "hugetlbfs"), _memory),
    **dict.fromkeys(_ON_DISKS.split(), _disk),
    **dict.fromkeys(("nfs", "nfs4"), _nfs),
    **dict.fromkeys(("cifs", "smb3", "smbfs"), _smb),
    **dict.fromkeys(
        ("ceph", "fuse.ceph-fuse", "lustre", "gfs2", "ocfs2", "beegfs", "gpfs"), _cluster
    ),
    **dict.fromkeys(("9p", "virtiofs"), _passed_through),
    **dict.fromkeys(("zfs", "fuse.zfs-fuse"), _zfs),
    "fuse.sshfs": _sshfs,
    "fuse.glusterfs": _gluster,
    "overlay": _overlay,
}
