"""Rules for every NFS mount, from nfs(5) and exports(5) of nfs-utils 2.6."""

from replayer.doctor.advice import Advice, Options, Rule, Service, always, on, when, when_set

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
