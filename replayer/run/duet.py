"""Two targets at the same moment: what a duet cannot be made of, refused before anything is made.

The method is that of Bulej and others, 'Duet Benchmarking: Improving Measurement Accuracy in the
Cloud' (ICPE 2020). What only a measurement shows is judged afterwards, in the report.
"""

from collections.abc import Iterator, Sequence

from replayer.errors import ReplayerError
from replayer.measure.backends import find_shared
from replayer.measure.run import Target
from replayer.measure.units import format_many
from replayer.run.options import Settings
from replayer.run.spawner import Spawner
from replayer.run.targets import NamedTarget, TargetError
from replayer.run.workload import Workload

VOICES = 2
IN_TURNS = "leave --duet out: targets then take turns"


def refuse_duet(
    settings: Settings, spawner: Spawner, workload: Workload, targets: Sequence[NamedTarget]
) -> None:
    """Refuse what two targets cannot do at the same moment.

    Raises:
        ReplayerError: Says what, and what can be done instead.
    """
    for why, hint in _refusals(settings, spawner, workload, targets):
        raise ReplayerError(f"--duet {why}", hint=hint)


def _refusals(
    settings: Settings, spawner: Spawner, workload: Workload, targets: Sequence[NamedTarget]
) -> Iterator[tuple[str, str]]:
    if len(targets) != VOICES:
        yield (
            f"needs exactly {VOICES} targets, got {format_many(len(targets), 'target')}",
            "give two: --target a=PATH --target b=PATH",
        )
    if spawner.is_shaped or spawner.has_python_users:
        yield "needs users of a scenario alone", "leave the locustfile out"
    if workload.plan.duration_ns is None or workload.plan.transactions_per_user is not None:
        yield (
            "needs a time: one target would be done before the other",
            "add -t, such as -t 60s, or leave iterations and --loops out",
        )
    if settings.replay is not None and (settings.replay.check_order or settings.replay.event_log):
        yield "keeps no log of events, which both targets would write", IN_TURNS
    if settings.remount_command is not None:
        yield "cannot remount between its rounds", "leave --remount-command out"


def check_apart(targets: Sequence[Target]) -> None:
    """Refuse two targets that are known to share what serves them.

    Raises:
        TargetError: Says what they share.
    """
    one, other = targets
    for mount in one.mounts:
        for beside in other.mounts:
            shared = find_shared(mount, beside)
            if shared is not None:
                message = f"--duet: {one.name} and {other.name} {shared}: each would slow the other"
                raise TargetError(message, hint=IN_TURNS)
