"""Advice about a mount: rules by file system, each with its source.

A rule looks at the options and the service and says something or nothing. What a client cannot see
(the server's export, a volume's throughput mode) is asked about, never guessed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from replayer.measure.facts import Frozen, MountFacts

Weight = Literal["warning", "consider", "good", "ask"]
Service = Literal["Amazon EFS", "Amazon FSx", "NFS", "other"]


class Advice(Frozen):
    """One piece of advice.

    Attributes come in the order in which they are read.
    """

    weight: Weight
    """warning: costs data or much time; consider: may help; good: as it should be; ask: only the
    server knows."""
    setting: str
    says: str
    source: str
    """The manual page or document, and its part."""


@dataclass(frozen=True)
class Options:
    """Mount options by name; those without a value have an empty one."""

    values: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Return an option's value."""
        return self.values.get(name, default)

    def number(self, name: str) -> int | None:
        """Return an option's value as a number, None if it has none."""
        text = self.values.get(name, "")
        return int(text) if text.isdigit() else None

    def shown(self, name: str) -> str:
        """Return an option as the mount table shows it."""
        return f"{name}={self.values[name]}" if self.values[name] else name

    def has(self, setting: str) -> bool:
        """Whether an option (``name`` or ``name=value``) is set."""
        name, _, value = setting.partition("=")
        return self.values.get(name) == value


_SERVICES: frozenset[Service] = frozenset({"Amazon EFS", "Amazon FSx", "NFS", "other"})
_EFS: frozenset[Service] = frozenset({"Amazon EFS"})
_FSX: frozenset[Service] = frozenset({"Amazon FSx"})
_PLAIN_NFS: frozenset[Service] = frozenset({"NFS"})


def _always(_: Options) -> bool:
    return True


@dataclass(frozen=True)
class FixedAdvice:
    """A rule that gives one piece of advice, on some services' mounts where a condition holds.

    Without a condition it holds where the option is set.
    """

    weight: Weight
    setting: str
    says: str
    source: str
    where: Callable[[Options], bool] | None = None
    services: frozenset[Service] = _SERVICES

    def __call__(self, options: Options, service: Service) -> Advice | None:
        """Return the advice if it holds."""
        holds = options.has(self.setting) if self.where is None else self.where(options)
        if service not in self.services or not holds:
            return None
        return Advice(weight=self.weight, setting=self.setting, says=self.says, source=self.source)


Rule = Callable[[Options, Service], Advice | None]

LARGEST_BYTES = 1_048_576  # nfs(5), rsize: the largest payload that the Linux client supports
_LONG_S = 30  # chosen: ten times the default
_LEAST_S, _MOST_S = 3, 60  # nfs(5): acregmin and acregmax unless set
_LOOKUPS = "nfs(5), option lookupcache and 'Directory entry caching'"
_HELPER = "Amazon EFS User Guide, 'Mount settings used by EFS mount helper'"
_TIPS = "Amazon EFS User Guide, 'Amazon EFS performance tips'"
_RECOMMENDED = {"timeo": "600", "retrans": "2"}


def _is_tunnelled(options: Options) -> bool:
    """Whether the server is reached through a process on this machine, such as stunnel."""
    return options.text("addr").startswith("127.") or options.text("addr") == "::1"


def _attributes_never_kept(options: Options) -> bool:
    zeros = all(options.text(name) == "0" for name in ("acregmin", "acregmax", "acdirmin"))
    return "noac" not in options and zeros


def _attributes(options: Options, _: Service) -> Advice | None:
    if "noac" in options or options.text("acregmax") == "0":
        return None
    seconds = options.number("acregmin")
    least = _LEAST_S if seconds is None else seconds
    if least >= _LONG_S:
        return None
    says = (
        f"the client caches attributes of a file for at least {least} s (default {_LEAST_S} to "
        f"{_MOST_S} s). If files change only with releases, as in a document root, a longer time "
        "saves requests. Changes by other clients are then seen later"
    )
    source = "nfs(5), options acregmin, acregmax, acdirmin, acdirmax and actimeo"
    return Advice(weight="consider", setting="actimeo", says=says, source=source)


def _payload(options: Options, service: Service) -> Advice | None:
    names = ("rsize", "wsize")
    small = [name for name in names if 0 < (options.number(name) or 0) < LARGEST_BYTES]
    if not small:
        return None
    says = (
        f"a request carries at most this many bytes; the client supports {LARGEST_BYTES}. Either "
        "the mount asked for less, or the server supports no more"
    )
    source = "nfs(5), options rsize and wsize" + (f"; {_HELPER}" if service in _EFS else "")
    setting = ", ".join(map(options.shown, small))
    return Advice(weight="consider", setting=setting, says=says, source=source)


def _connections(options: Options, service: Service) -> Advice | None:
    tcp = options.text("proto", "tcp") in {"tcp", "tcp6"}
    if service in _EFS or not tcp or _is_tunnelled(options):
        return None
    source = "nfs(5), option nconnect"
    number = options.number("nconnect")
    if number is not None and number > 1:
        says = "several connections to the server share the load"
        return Advice(weight="good", setting=options.shown("nconnect"), says=says, source=source)
    says = (
        "all requests share one TCP connection. nconnect=2 to 16 opens several, which helps if "
        "one does not fill the network. Measure both: replayer compare"
    )
    setting = "nconnect" if number is None else options.shown("nconnect")
    return Advice(weight="consider", setting=setting, says=says, source=source)


def _helper(options: Options, service: Service) -> Advice | None:
    if service not in _EFS:
        return None
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


_NOT_CACHED = "attributes are not cached: each stat and each lookup is a request to the server"
_CACHING = "nfs(5), options ac / noac and actimeo"
_NAMES_MISSED = (
    "each lookup of a missing name is a request to the server. Applications that search for files "
    "(PHP include paths, WordPress) make many of them"
)
_ASYNC = (
    "an async export answers before data is on stable storage. This is faster, but a crash of the "
    "server can lose or corrupt data. "
)
_EXPORTS = "exports(5), options sync and async"

NFS_RULES: tuple[Rule, ...] = (
    FixedAdvice(
        "warning",
        "soft",
        "a request that times out fails, which can corrupt data silently. With hard, the default, "
        "the client waits until the server answers",
        "nfs(5), option soft / hard",
    ),
    FixedAdvice(
        "warning",
        "softerr",
        "a request that times out fails with ETIMEDOUT, which can corrupt data silently. With "
        "hard, the default, the client waits until the server answers",
        "nfs(5), option softerr / hard",
    ),
    FixedAdvice("warning", "noac", f"{_NOT_CACHED}, and writes are synchronous", _CACHING),
    FixedAdvice("warning", "actimeo=0", _NOT_CACHED, _CACHING, _attributes_never_kept),
    _attributes,
    FixedAdvice(
        "warning",
        "lookupcache=none",
        "each lookup of a name is a request to the server",
        _LOOKUPS,
    ),
    FixedAdvice("consider", "lookupcache=pos", _NAMES_MISSED, _LOOKUPS),
    FixedAdvice("consider", "lookupcache=positive", _NAMES_MISSED, _LOOKUPS),
    _payload,
    _connections,
    FixedAdvice(
        "good",
        "noatime",
        "has no effect on NFS mounts",
        "nfs(5), 'File timestamp maintenance'",
        lambda options: "noatime" in options or "nodiratime" in options,
    ),
    FixedAdvice(
        "warning",
        "sync",
        "each write waits until the server has it, which makes writes much slower",
        "nfs(5), 'The sync mount option'",
    ),
    FixedAdvice(
        "warning",
        "nocto",
        "a read may return old data of a file that another client changed. Use it only for "
        "read-only mounts whose data seldom changes",
        "nfs(5), option cto / nocto",
    ),
    FixedAdvice(
        "warning",
        "local_lock",
        "locks are local to this client. Two web servers that lock a file of this export (PHP "
        "sessions, SQLite) do not exclude each other",
        "nfs(5), options local_lock and nolock",
        lambda options: "nolock" in options or options.text("local_lock", "none") != "none",
    ),
    FixedAdvice(
        "ask",
        "sync or async export",
        f"{_ASYNC}Check it on the server: exportfs -v",
        _EXPORTS,
        _always,
        _PLAIN_NFS,
    ),
    FixedAdvice(
        "warning",
        "vers=4.0",
        "NFSv4.1 reads more than 10,000 small files a second in parallel, NFSv4.0 less than 1,000",
        _TIPS,
        lambda options: options.text("vers") in {"4.0", "4"},
        _EFS,
    ),
    _helper,
    FixedAdvice(
        "ask",
        "addr",
        "a process on this machine connects to the server. The EFS mount helper does this for "
        "encryption in transit. On Amazon EFS, throughput can then fall to a baseline when burst "
        "credits are used up: watch BurstCreditBalance. Each operation has a fixed latency, and "
        "many small files stay slow",
        "Amazon EFS User Guide, 'How the EFS mount helper works'; "
        "AWS Knowledge Center, 'efs-burst-credits'",
        _is_tunnelled,
        _PLAIN_NFS,
    ),
    FixedAdvice(
        "ask",
        "throughput mode",
        "in bursting mode, throughput falls to a baseline when the credits are used up. Watch "
        "BurstCreditBalance, and choose a run time that includes this",
        "AWS Knowledge Center, 'efs-burst-credits'",
        _always,
        _EFS,
    ),
    FixedAdvice(
        "consider",
        "small files",
        "each operation has a fixed latency, and throughput grows with the size of operations. "
        "Many small files stay slow, whatever the options",
        f"{_TIPS}, 'Average I/O size'",
        _always,
        _EFS,
    ),
    FixedAdvice(
        "ask",
        "sync or async export",
        f"{_ASYNC}On FSx for OpenZFS, exports are sync by default",
        f"{_EXPORTS}; Amazon FSx API Reference, OpenZFSClientConfiguration",
        _always,
        _FSX,
    ),
)


_UNSAFE = (
    "the device cache is not flushed. A power cut can damage the file system and lose fsynced "
    "data, unless the cache has a battery"
)


def _writes_each_access(options: Options) -> bool:
    """Whether reads write access times; the kernel shows strictatime by the lack of the others."""
    return not any(name in options for name in ("relatime", "noatime", "lazytime", "ro"))


_DISK: tuple[Rule, ...] = (
    FixedAdvice(
        "consider",
        "strictatime",
        "neither relatime nor noatime is set: each read writes the access time. relatime is the "
        "kernel's default",
        "mount(8), option strictatime",
        _writes_each_access,
    ),
    FixedAdvice("consider", "sync", "writes wait for the device", "mount(8), option sync"),
    FixedAdvice(
        "consider",
        "dirsync",
        "directory changes wait for the device",
        "mount(8), option dirsync",
    ),
)
_BARRIERS = "ext4(5), options barrier and nobarrier"
_EXT: tuple[Rule, ...] = (
    *_DISK,
    *(FixedAdvice("warning", option, _UNSAFE, _BARRIERS) for option in ("nobarrier", "barrier=0")),
    FixedAdvice(
        "consider",
        "data=journal",
        "all data is first written to the journal: each byte is written twice",
        "ext4(5), option data",
    ),
    FixedAdvice(
        "warning",
        "data=writeback",
        "after a crash, files may have old data in place of new data",
        "ext4(5), option data",
    ),
)
_F2FS = "kernel documentation, filesystems/f2fs, nobarrier"

DISK_RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), _EXT),
    "xfs": _DISK,  # always with barriers: Linux 4.19 took the option away
    "btrfs": (*_DISK, FixedAdvice("warning", "nobarrier", _UNSAFE, "btrfs(5), option nobarrier")),
    "f2fs": (*_DISK, FixedAdvice("warning", "nobarrier", _UNSAFE, _F2FS)),
}
"""By the name that the mount table gives a file system."""

_SIZE = FixedAdvice(
    "consider",
    "size",
    "without size=, it can grow to half of the memory, which programs then lack",
    "tmpfs(5), option size",
    lambda options: "size" not in options,
)

SSHFS_RULES: tuple[Rule, ...] = (
    FixedAdvice(
        "ask",
        "dir_cache, dcache_timeout",
        "sshfs caches attributes and listings for 20 s by default. A stat is fast, but changes by "
        "other clients are seen up to 20 s later. Measure it: replayer run visibility",
        "sshfs(1), options dir_cache and dcache_timeout",
        _always,
    ),
    FixedAdvice(
        "ask",
        "max_conns",
        "all calls share one SSH connection unless max_conns is set. A large transfer delays "
        "small requests",
        "sshfs(1), option max_conns",
        _always,
    ),
    FixedAdvice(
        "ask",
        "sshfs_sync",
        "writes do not wait for the server unless sshfs_sync is set. An error may be reported by "
        "a later call or by close",
        "sshfs(1), option sshfs_sync",
        _always,
    ),
)

_NFS = ("nfs", "nfs4")

RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(_NFS, NFS_RULES),
    **DISK_RULES,
    "tmpfs": (_SIZE,),
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
    pairs = (option.partition("=") for option in mount.all_options)
    return Options({name: value for name, _, value in pairs})
