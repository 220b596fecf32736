"""Rules for disks, memory and FUSE daemons.

Read in: mount(8), ext4(5), btrfs(5), the kernel's documentation of f2fs, tmpfs(5) and sshfs(1) of
sshfs 3.7. What a daemon was told on its command line is not in the mount table: it is asked about.
"""

from collections.abc import Mapping

from replayer.doctor.advice import Advice, Options, Rule, always, when, when_set

__all__ = ["DISK_RULES", "MEMORY_RULES", "SSHFS_RULES"]

_UNSAFE = (
    "the device's own cache is not flushed: a power cut may damage the file system and lose data "
    "that was fsynced, unless the cache is battery-backed"
)
_UNLIMITED = Advice(
    weight="consider",
    setting="size",
    says="without a size of its own it grows to half of the memory, which programs then lack",
    source="tmpfs(5), option size",
)

_STRICT = Advice(
    weight="consider",
    setting="strictatime",
    says="neither relatime nor noatime is set, so each read writes the access time; relatime is "
    "the kernel's default",
    source="mount(8), option strictatime",
)


def _writes_each_access(options: Options) -> bool:
    """Whether reads write access times; the kernel shows strictatime by the lack of the others."""
    return not any(name in options for name in ("relatime", "noatime", "lazytime", "ro"))


_DISK: tuple[Rule, ...] = (
    when(_writes_each_access, _STRICT),
    when_set("sync", "consider", "writes wait for the device", "mount(8), option sync"),
    when_set(
        "dirsync",
        "consider",
        "changes of directories wait for the device",
        "mount(8), option dirsync",
    ),
)

_EXT: tuple[Rule, ...] = (
    *_DISK,
    *(
        when_set(option, "warning", _UNSAFE, "ext4(5), options barrier and nobarrier")
        for option in ("nobarrier", "barrier=0")
    ),
    when_set(
        "data=journal",
        "consider",
        "all data is written into the journal first, and so twice",
        "ext4(5), option data",
    ),
    when_set(
        "data=writeback",
        "warning",
        "after a crash files may hold old data where new ones were written",
        "ext4(5), option data",
    ),
)

DISK_RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), _EXT),
    "xfs": _DISK,  # always with barriers: Linux 4.19 took the option away
    "btrfs": (*_DISK, when_set("nobarrier", "warning", _UNSAFE, "btrfs(5), option nobarrier")),
    "f2fs": (
        *_DISK,
        when_set(
            "nobarrier", "warning", _UNSAFE, "kernel documentation, filesystems/f2fs, nobarrier"
        ),
    ),
}
"""By the name that the mount table gives a file system."""

MEMORY_RULES: tuple[Rule, ...] = (when(lambda options: "size" not in options, _UNLIMITED),)

SSHFS_RULES: tuple[Rule, ...] = (
    always(
        "ask",
        "dir_cache, dcache_timeout",
        "sshfs keeps attributes and listings for 20 s unless told otherwise: a stat is fast, and "
        "what another client changed is seen that much later (measure it: replayer run visibility)",
        "sshfs(1), options dir_cache and dcache_timeout",
    ),
    always(
        "ask",
        "max_conns",
        "all calls share one SSH connection unless max_conns says otherwise: a large transfer "
        "holds up small requests",
        "sshfs(1), option max_conns",
    ),
    always(
        "ask",
        "sshfs_sync",
        "writes are sent on without waiting for the server's answer unless sshfs_sync is given: "
        "an error may come with a later call or with close",
        "sshfs(1), option sshfs_sync",
    ),
)
