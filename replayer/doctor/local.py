"""Rules for disks, memory and FUSE daemons.

Read in: mount(8), ext4(5), tmpfs(5) and sshfs(1) of sshfs 3.7. What a daemon was told on its
command line is not in the mount table: it is asked about.
"""

from replayer.doctor.advice import Advice, Rule, always, when, when_set

__all__ = ["DISK_RULES", "MEMORY_RULES", "SSHFS_RULES"]

_BARRIER = "ext4(5), options barrier and nobarrier"
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

DISK_RULES: tuple[Rule, ...] = (
    when_set(
        "strictatime",
        "consider",
        "each read writes the access time; relatime (the kernel's default) or noatime do not",
        "mount(8), option strictatime",
    ),
    when_set("sync", "consider", "writes wait for the device", "mount(8), option sync"),
    when_set(
        "dirsync",
        "consider",
        "changes of directories wait for the device",
        "mount(8), option dirsync",
    ),
    when_set("nobarrier", "warning", _UNSAFE, _BARRIER),
    when_set("barrier=0", "warning", _UNSAFE, _BARRIER),
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
