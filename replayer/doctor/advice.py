"""Advice about a mount: rules by file system, each with its source.

A rule looks at options and the service and says something or nothing. Most rules are one of two
kinds: an option is set (``when_set``), or the server is somebody's (``on``). What a client cannot
see (the server's export, a volume's throughput mode) is asked about, never guessed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from replayer.measure import Frozen, MountFacts

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


Rule = Callable[[Options, Service], Advice | None]


def always(weight: Weight, setting: str, says: str, source: str) -> Rule:
    """Make a rule that says the same of each mount."""
    advice = Advice(weight=weight, setting=setting, says=says, source=source)
    return lambda _options, _service: advice


def when_set(option: str, weight: Weight, says: str, source: str) -> Rule:
    """Make a rule that speaks where an option (``name`` or ``name=value``) is set."""
    name, _, value = option.partition("=")
    advice = Advice(weight=weight, setting=option, says=says, source=source)
    return when(lambda options: name in options and options.text(name) == value, advice)


def when(condition: Callable[[Options], bool], advice: Advice) -> Rule:
    """Make a rule that gives one piece of advice where a condition holds."""
    return lambda options, _service: advice if condition(options) else None


def on(services: frozenset[Service], rule: Rule) -> Rule:
    """Make a rule that is asked on some services' mounts only."""
    return lambda options, service: rule(options, service) if service in services else None


LARGEST_BYTES = 1_048_576  # nfs(5), rsize: the largest payload that the Linux client supports
_LONG_S = 30  # chosen: ten times the default
_LEAST_S, _MOST_S = 3, 60  # nfs(5): acregmin and acregmax unless set
_LOOKUPS = "nfs(5), option lookupcache and 'Directory entry caching'"
_LOCKS = "nfs(5), options local_lock and nolock"
_NOT_EFS: frozenset[Service] = frozenset({"NFS", "Amazon FSx"})


def is_tunnelled(options: Options) -> bool:
    """Whether the server is reached through a process on this machine, such as stunnel."""
    return options.text("addr").startswith("127.") or options.text("addr") == "::1"


def _attributes_never_kept(options: Options) -> bool:
    return all(options.text(name) == "0" for name in ("acregmin", "acregmax", "acdirmin"))


def _attributes(options: Options, _: Service) -> Advice | None:
    if "noac" in options or options.text("acregmax") == "0":
        return None
    seconds = options.number("acregmin")
    least = _LEAST_S if seconds is None else seconds
    if least >= _LONG_S:
        return None
    says = (
        f"attributes of a file are trusted for {least} s at least ({_LEAST_S} to {_MOST_S} s "
        "unless set), then asked for again; where files change with releases only, such as a "
        "document root, a longer time saves requests, at the price that other clients' changes "
        "are seen later"
    )
    source = "nfs(5), options acregmin, acregmax, acdirmin, acdirmax and actimeo"
    return Advice(weight="consider", setting="actimeo", says=says, source=source)


def _payload(options: Options, service: Service) -> Advice | None:
    small = [
        options.shown(name)
        for name in ("rsize", "wsize")
        if 0 < (options.number(name) or 0) < LARGEST_BYTES
    ]
    if not small:
        return None
    says = (
        f"requests carry at most that many bytes, the client supports {LARGEST_BYTES}: either "
        "less was asked for at the mount, or it is all that the server supports"
    )
    source = "nfs(5), options rsize and wsize"
    if service == "Amazon EFS":
        source += "; Amazon EFS User Guide, 'Mount settings used by EFS mount helper'"
    return Advice(weight="consider", setting=", ".join(small), says=says, source=source)


def _connections(options: Options, _: Service) -> Advice | None:
    if options.text("proto", "tcp") not in {"tcp", "tcp6"} or is_tunnelled(options):
        return None
    source = "nfs(5), option nconnect"
    number = options.number("nconnect")
    if number is not None and number > 1:
        says = "several connections to the server share the load"
        return Advice(weight="good", setting=options.shown("nconnect"), says=says, source=source)
    says = (
        "all requests share one TCP connection; nconnect=2 to 16 opens several, which may help "
        "where one of them does not fill the network (measure both: replayer compare)"
    )
    setting = "nconnect" if number is None else options.shown("nconnect")
    return Advice(weight="consider", setting=setting, says=says, source=source)


_NEVER_KEPT = Advice(
    weight="warning",
    setting="actimeo=0",
    says="attributes are not cached: each stat and each look-up asks the server",
    source="nfs(5), options ac / noac and actimeo",
)
_LOCAL_LOCKS = Advice(
    weight="warning",
    setting="local_lock",
    says="locks are kept on this client: two web servers that lock a file of this export (PHP "
    "sessions, SQLite) do not see each other's",
    source=_LOCKS,
)
_NO_TIMES = Advice(
    weight="good",
    setting="noatime",
    says="has no effect on NFS mounts: neither harm nor help",
    source="nfs(5), 'File timestamp maintenance'",
)
_NAMES_MISSED = (
    "look-ups of names that do not exist are asked of the server each time; applications that "
    "search for files (PHP include paths, WordPress) make many of them"
)

NFS_RULES: tuple[Rule, ...] = (
    when_set(
        "soft",
        "warning",
        "a request that times out ends as an error, and data can be corrupted silently; hard, the "
        "default, waits until the server answers",
        "nfs(5), option soft / hard",
    ),
    when_set(
        "softerr",
        "warning",
        "a request that times out ends as an error (ETIMEDOUT), and data can be corrupted "
        "silently; hard, the default, waits until the server answers",
        "nfs(5), option softerr / hard",
    ),
    when_set(
        "noac",
        "warning",
        f"{_NEVER_KEPT.says}, and writes are synchronous",
        _NEVER_KEPT.source,
    ),
    when(lambda options: "noac" not in options and _attributes_never_kept(options), _NEVER_KEPT),
    _attributes,
    when_set(
        "lookupcache=none",
        "warning",
        "every look-up of a name is asked of the server again",
        _LOOKUPS,
    ),
    when_set("lookupcache=pos", "consider", _NAMES_MISSED, _LOOKUPS),
    when_set("lookupcache=positive", "consider", _NAMES_MISSED, _LOOKUPS),
    _payload,
    on(_NOT_EFS, _connections),
    when(lambda options: "noatime" in options or "nodiratime" in options, _NO_TIMES),
    when_set(
        "sync",
        "warning",
        "each write waits until the server has it, at a significant cost",
        "nfs(5), 'The sync mount option'",
    ),
    when_set(
        "nocto",
        "warning",
        "a file that another client changed may be read as it was: for read-only mounts whose "
        "data changes occasionally only",
        "nfs(5), option cto / nocto",
    ),
    when(
        lambda options: "nolock" in options or options.text("local_lock", "none") != "none",
        _LOCAL_LOCKS,
    ),
    on(
        frozenset({"NFS"}),
        always(
            "ask",
            "sync or async export",
            "an export with async answers before data is on stable storage: faster, but a crash of "
            "the server can lose or corrupt it. Ask the server (exportfs -v)",
            "exports(5), options sync and async",
        ),
    ),
)


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
