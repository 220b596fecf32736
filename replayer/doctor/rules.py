"""Which rules a mount is held against, by its file system, and what they say of it.

The rules themselves are next door (``nfs``, ``amazon``, ``local``), each with its source. What a
client cannot see (the server's export, a volume's throughput mode) is asked about, never guessed.
"""

from collections.abc import Mapping

from replayer.doctor.advice import Advice, Options, Rule, Service, always, on, when, when_set
from replayer.doctor.nfs import NFS_RULES, is_tunnelled
from replayer.measure import MountFacts

_HELPER = "Amazon EFS User Guide, 'Mount settings used by EFS mount helper'"
_TIPS = "Amazon EFS User Guide, 'Amazon EFS performance tips'"
_EFS: frozenset[Service] = frozenset({"Amazon EFS"})
_NFS_SERVICE: frozenset[Service] = frozenset({"NFS"})
_FSX: frozenset[Service] = frozenset({"Amazon FSx"})
_RECOMMENDED = {"timeo": "600", "retrans": "2"}


def _helper(options: Options, _: Service) -> Advice | None:
    wrong = [
        f"{name} is {options.text(name) or 'not set'}, {value} is recommended"
        for name, value in _RECOMMENDED.items()
        if options.text(name) != value
    ]
    if "noresvport" not in options:
        wrong.append("noresvport is not set: it keeps the mount available after a reconnection")
    if not wrong:
        says = "timeo, retrans and noresvport are as the mount helper sets them"
        return Advice(weight="good", setting="mount helper", says=says, source=_HELPER)
    return Advice(weight="consider", setting="mount helper", says="; ".join(wrong), source=_HELPER)


_OLD_VERSION = Advice(
    weight="warning",
    setting="vers=4.0",
    says="NFSv4.1 reads small files in parallel at more than 10,000 a second, NFSv4.0 at less than "
    "1,000",
    source=_TIPS,
)

_TUNNEL = Advice(
    weight="ask",
    setting="addr",
    says="the server is reached through a process on this machine. With encryption in transit the "
    "EFS mount helper mounts Amazon EFS so: then its throughput may fall to a baseline when burst "
    "credits are used up (watch BurstCreditBalance), and each operation has a latency of its own, "
    "so that many small files stay slow",
    source="Amazon EFS User Guide, 'How the EFS mount helper works'; "
    "AWS Knowledge Center, 'efs-burst-credits'",
)

AMAZON_RULES: tuple[Rule, ...] = (
    on(_EFS, when(lambda options: options.text("vers") in {"4.0", "4"}, _OLD_VERSION)),
    on(_EFS, _helper),
    on(_NFS_SERVICE, when(is_tunnelled, _TUNNEL)),
    on(
        _EFS,
        always(
            "ask",
            "throughput mode",
            "in bursting mode throughput falls to a baseline when the credits are used up: watch "
            "BurstCreditBalance, and let a run last long enough to see it",
            "AWS Knowledge Center, 'efs-burst-credits'",
        ),
    ),
    on(
        _EFS,
        always(
            "consider",
            "small files",
            "each operation has a latency of its own, so throughput grows with the size of "
            "operations: many small files stay slow, whatever the options",
            f"{_TIPS}, 'Average I/O size'",
        ),
    ),
    on(
        _FSX,
        always(
            "ask",
            "sync or async export",
            "an export with async answers before data is on stable storage: faster, but a crash of "
            "the server can lose or corrupt it. On FSx for OpenZFS sync is an export's default",
            "exports(5), options sync and async; Amazon FSx API Reference, "
            "OpenZFSClientConfiguration",
        ),
    ),
)


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
