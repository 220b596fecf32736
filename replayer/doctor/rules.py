"""The rules of advice, by family of file system, each with its source.

Read in: nfs(5) and exports(5) of nfs-utils 2.6; the Amazon EFS User Guide, 'Mount settings used by
EFS mount helper' and 'Amazon EFS performance tips'; the Amazon FSx API Reference,
'OpenZFSClientConfiguration'; mount(8); the PHP manual, 'OPcache: Runtime Configuration'.
"""

from replayer.doctor.advice import Advice, Options, Rule, Service

__all__ = ["PHP_ADVICE", "RULES"]

_LARGEST_BYTES = 1_048_576  # nfs(5), rsize: the largest payload that the Linux client supports
_HELPER = "Amazon EFS User Guide, 'Mount settings used by EFS mount helper'"
_TIPS = "Amazon EFS User Guide, 'Amazon EFS performance tips'"
_EFS: Service = "Amazon EFS"


def _soft(options: Options, _: Service) -> Advice | None:
    if "soft" not in options:
        return None
    says = (
        "a request that times out ends as an error, and data can be corrupted silently; hard, the "
        "default, waits until the server answers"
    )
    return Advice(weight="warning", setting="soft", says=says, source="nfs(5), option soft / hard")


def _no_attributes(options: Options, _: Service) -> Advice | None:
    zero = all(options.text(name) == "0" for name in ("acregmin", "acregmax", "acdirmin"))
    if "noac" not in options and not zero:
        return None
    says = "attributes are not cached: each stat and each look-up asks the server" + (
        ", and writes are synchronous" if "noac" in options else ""
    )
    setting = "noac" if "noac" in options else "actimeo=0"
    return Advice(
        weight="warning", setting=setting, says=says, source="nfs(5), options ac / noac and actimeo"
    )


def _attributes(options: Options, _: Service) -> Advice | None:
    if "noac" in options or options.text("acregmax") == "0":
        return None
    seconds = options.number("acregmin")
    least = 3 if seconds is None else seconds
    if least >= _LONG_S:
        return None
    says = (
        f"attributes of a file are trusted for {least} s at least (3 to 60 s unless set), then "
        "asked for again; where files change with releases only, such as a document root, a longer "
        "time saves requests, at the price that other clients' changes are seen later"
    )
    return Advice(
        weight="consider",
        setting="actimeo",
        says=says,
        source="nfs(5), options acregmin, acregmax, acdirmin, acdirmax and actimeo",
    )


_LONG_S = 30  # chosen: ten times the default


def _lookups(options: Options, _: Service) -> Advice | None:
    mode = options.text("lookupcache", "all")
    says = {
        "none": "every look-up of a name is asked of the server again",
        "pos": "look-ups of names that do not exist are asked of the server each time; "
        "applications that search for files (PHP include paths, WordPress) make many of them",
    }.get({"positive": "pos"}.get(mode, mode))
    if says is None:
        return None
    return Advice(
        weight="warning" if mode == "none" else "consider",
        setting=f"lookupcache={mode}",
        says=says,
        source="nfs(5), option lookupcache and 'Directory entry caching'",
    )


def _payload(options: Options, service: Service) -> Advice | None:
    sizes = {name: options.number(name) for name in ("rsize", "wsize")}
    small = [f"{name}={size}" for name, size in sizes.items() if size and size < _LARGEST_BYTES]
    if not small:
        return None
    says = (
        f"requests carry at most that many bytes, the client supports {_LARGEST_BYTES}: either "
        "less was asked for at the mount, or it is all that the server supports"
    )
    source = "nfs(5), options rsize and wsize" + (f"; {_HELPER}" if service == _EFS else "")
    return Advice(weight="consider", setting=", ".join(small), says=says, source=source)


def _connections(options: Options, service: Service) -> Advice | None:
    if service == _EFS or options.text("proto", "tcp") not in {"tcp", "tcp6"}:
        return None
    number = options.number("nconnect")
    if number is not None:
        return Advice(
            weight="good",
            setting=f"nconnect={number}",
            says="several connections to the server share the load",
            source="nfs(5), option nconnect",
        )
    says = (
        "all requests share one TCP connection; nconnect=2 to 16 opens several, which may help "
        "where one of them does not fill the network (measure both: replayer compare)"
    )
    return Advice(
        weight="consider", setting="nconnect", says=says, source="nfs(5), option nconnect"
    )


def _atime(options: Options, _: Service) -> Advice | None:
    if "noatime" not in options and "nodiratime" not in options:
        return None
    return Advice(
        weight="good",
        setting="noatime",
        says="has no effect on NFS mounts: neither harm nor help",
        source="nfs(5), 'File timestamp maintenance'",
    )


def _sync(options: Options, _: Service) -> Advice | None:
    if "sync" not in options:
        return None
    says = "each write waits until the server has it, at a significant cost"
    return Advice(
        weight="warning", setting="sync", says=says, source="nfs(5), 'The sync mount option'"
    )


def _coherence(options: Options, _: Service) -> Advice | None:
    if "nocto" not in options:
        return None
    says = (
        "a file that another client changed may be read as it was: for read-only mounts whose "
        "data changes occasionally only"
    )
    return Advice(weight="warning", setting="nocto", says=says, source="nfs(5), option cto / nocto")


def _export(_: Options, service: Service) -> Advice | None:
    if service == _EFS:
        return None
    says = (
        "an export with async answers before data is on stable storage: faster, but a crash of the "
        "server can lose or corrupt it. Ask the server (exportfs -v)"
    )
    source = "exports(5), options sync and async"
    if service == "Amazon FSx":
        says += "; on FSx for OpenZFS sync is the default of an export"
        source += "; Amazon FSx API Reference, OpenZFSClientConfiguration"
    return Advice(weight="ask", setting="sync or async export", says=says, source=source)


def _efs_version(options: Options, service: Service) -> Advice | None:
    if service != _EFS or options.text("vers") not in {"4.0", "4"}:
        return None
    says = (
        "NFSv4.1 reads small files in parallel at more than 10,000 a second, NFSv4.0 at less than "
        "1,000"
    )
    return Advice(weight="warning", setting="vers=4.0", says=says, source=_TIPS)


def _efs_helper(options: Options, service: Service) -> Advice | None:
    if service != _EFS:
        return None
    wrong = [
        f"{name} is {options.text(name) or 'not set'}, {value} is recommended"
        for name, value in (("timeo", "600"), ("retrans", "2"))
        if options.text(name) != value
    ]
    if "noresvport" not in options:
        wrong.append("noresvport is not set: it keeps the mount available after a reconnection")
    if not wrong:
        says = "timeo, retrans and noresvport are as the mount helper sets them"
        return Advice(weight="good", setting="mount helper", says=says, source=_HELPER)
    return Advice(weight="consider", setting="mount helper", says="; ".join(wrong), source=_HELPER)


def _efs_credits(_: Options, service: Service) -> Advice | None:
    if service != _EFS:
        return None
    says = (
        "in bursting mode throughput falls to a baseline when the credits are used up: watch "
        "BurstCreditBalance, and let a run last long enough to see it"
    )
    source = "AWS Knowledge Center, 'efs-burst-credits'"
    return Advice(weight="ask", setting="throughput mode", says=says, source=source)


def _efs_sizes(_: Options, service: Service) -> Advice | None:
    if service != _EFS:
        return None
    says = (
        "each operation has a latency of its own, so throughput grows with the size of operations: "
        "many small files stay slow, whatever the options"
    )
    return Advice(
        weight="consider", setting="small files", says=says, source=f"{_TIPS}, 'Average I/O size'"
    )


def _disk_atime(options: Options, _: Service) -> Advice | None:
    if "strictatime" not in options:
        return None
    says = "each read writes the access time; relatime (the kernel's default) or noatime do not"
    return Advice(
        weight="consider", setting="strictatime", says=says, source="mount(8), option strictatime"
    )


def _disk_sync(options: Options, _: Service) -> Advice | None:
    if "sync" not in options and "dirsync" not in options:
        return None
    says = "writes (sync) or changes of directories (dirsync) wait for the device"
    setting = "sync" if "sync" in options else "dirsync"
    return Advice(weight="consider", setting=setting, says=says, source="mount(8), option sync")


RULES: dict[str, tuple[Rule, ...]] = {
    "nfs": (
        _soft, _no_attributes, _attributes, _lookups, _payload, _connections, _atime, _sync,
        _coherence, _export, _efs_version, _efs_helper, _efs_credits, _efs_sizes,
    ),
    "disk": (_disk_atime, _disk_sync),
}  # fmt: skip

_OPCACHE = "PHP manual, 'OPcache: Runtime Configuration'"

PHP_ADVICE = (
    Advice(
        weight="consider",
        setting="opcache.validate_timestamps=0",
        says="with 1, the default, PHP asks the mount for the times of its scripts every "
        "opcache.revalidate_freq seconds (2 unless set); with 0 it does not, and a deployment must "
        "reset the cache (opcache_reset() or a reload of PHP)",
        source=_OPCACHE,
    ),
    Advice(
        weight="consider",
        setting="opcache.max_accelerated_files",
        says="OPcache has room for 10,000 scripts unless set: a site with more of them does not "
        "fit",
        source=_OPCACHE,
    ),
    Advice(
        weight="consider",
        setting="realpath_cache_ttl",
        says="resolved paths are kept for 120 s, in 4096K, unless set; then they are resolved on "
        "the mount again",
        source="PHP source, main/main.c: realpath_cache_size and realpath_cache_ttl",
    ),
)
"""For those who run PHP (WordPress) from a shared mount."""
