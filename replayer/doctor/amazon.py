"""Rules for Amazon EFS and Amazon FSx, beside those for every NFS mount.

Read in: the Amazon EFS User Guide, 'Mount settings used by EFS mount helper' and 'Amazon EFS
performance tips'; the Amazon FSx API Reference, 'OpenZFSClientConfiguration'.
"""

from replayer.doctor.advice import Advice, Options, Rule, Service, always, on, when
from replayer.doctor.nfs import is_tunnelled

__all__ = ["AMAZON_RULES"]

_HELPER = "Amazon EFS User Guide, 'Mount settings used by EFS mount helper'"
_TIPS = "Amazon EFS User Guide, 'Amazon EFS performance tips'"
_EFS: frozenset[Service] = frozenset({"Amazon EFS"})
_NFS: frozenset[Service] = frozenset({"NFS"})
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
    on(_NFS, when(is_tunnelled, _TUNNEL)),
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
