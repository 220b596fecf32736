"""What master and workers must agree on before anything is created: targets' names, and the plan.

A worker that was given a scenario of its own compiles it with the master's numbers: what it would
run must be what the master will tell of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replayer.cluster.wire import PROTOCOL
from replayer.cluster.worker_pool import LostWorkerError, WorkerPool
from replayer.errors import ReplayerError
from replayer.measure.facts import MachineFacts
from replayer.plan import Plan
from replayer.run.measured import MeasuredInterval
from replayer.run.options import Settings
from replayer.run.prepared_run import RunRequest, chosen_targets
from replayer.run.verification import refuse_others

__all__ = ["Agreement", "PoolTerms", "agree", "names_of"]


@dataclass(frozen=True)
class Agreement:
    """Workers that can work on one run.

    Attributes:
        worker pool: They.
        targets: What the first of them says of each target, as run.json has it.
        procedure: How caches are brought into their state, in words.
        machine: The first one's; each client of the run has its own.
        watch: Who follows the run, interval by interval.
    """

    pool: WorkerPool
    targets: tuple[Mapping[str, Any], ...]
    procedure: str
    machine: MachineFacts
    watch: Callable[[MeasuredInterval], None]


@dataclass(frozen=True)
class PoolTerms:
    """What the command line says beside the settings.

    Attributes:
        run_time_s: As it was given; None is left to the scenario.
        timeout_s: After which silence a worker or master is lost.
    """

    run_time_s: int | None
    timeout_s: float


def names_of(pool: WorkerPool, settings: Settings) -> tuple[str, ...]:
    """Return the names of the targets: the master's if it was given any, else the first worker's.

    Raises:
        ReplayerError: A worker speaks another protocol, or its targets have other names.
    """
    own = settings.targets or settings.reuse
    first: tuple[str, ...] = tuple(pool.workers[0].hello["targets"])
    wanted = tuple(target.name for target in chosen_targets(settings)) if own else first
    for worker in pool.workers:
        spoken = worker.hello["protocol"]
        if spoken != PROTOCOL:
            message = f"{worker} speaks protocol {spoken}, this master {PROTOCOL}"
            raise ReplayerError(message, hint="install the same version of replayer on both")
        names = tuple(worker.hello["targets"])
        if names != wanted:
            message = (
                f"{worker}: its targets are named {', '.join(names)}, the run's {', '.join(wanted)}"
            )
            hint = "name them alike everywhere: --target NAME=PATH; the paths may differ"
            raise ReplayerError(message, hint=hint)
    return wanted


def agree(
    pool: WorkerPool,
    request: RunRequest,
    terms: PoolTerms,
    watch: Callable[[MeasuredInterval], None],
) -> Agreement:
    """Tell all workers what will be run, and have them check it and their targets.

    Raises:
        ReplayerError: One of them cannot run it, or it is for one process only.
    """
    workload, settings = request.workload, request.settings
    refuse_others(workload.plan, "other processes")
    if len(pool.workers) > 1:
        _refuse_signals(workload.plan)
    told = {
        "numbers": {worker.id: worker.number for worker in pool.workers},
        "plan": workload.plan.document(),
        "fingerprint": workload.plan.fingerprint,
        "targets": [target.name for target in request.targets],
        "users": workload.plan.users,
        "run_time_s": terms.run_time_s,
        "rounds": request.rounds,
        "seed": settings.seed,
        "changes": list(settings.changes),
        "cache": workload.cache,
        "source": workload.source,
        "keep": settings.keep,
        "timeout_s": terms.timeout_s,
    }
    found = pool.order_all(pool.living, "prepare", told)
    for worker in pool.workers:
        if worker.lost is not None:
            message = f"{worker} is lost: it {worker.lost}"
            raise LostWorkerError(message, hint="nothing was run yet; start it again")
    for worker, facts in zip(pool.living, found, strict=True):
        worker.facts = facts
    return Agreement(
        pool=pool,
        targets=tuple(found[0]["targets"]),
        procedure="; ".join(dict.fromkeys(facts["procedure"] for facts in found)),
        machine=MachineFacts.model_validate(found[0]["machine"]),
        watch=watch,
    )


def _refuse_signals(plan: Plan) -> None:
    """Refuse to deal users to several processes who wait for each other's signals.

    A signal is known to the engine whose user gave it: those elsewhere would wait until their
    limits, and be counted as users who have not seen what was there.
    """
    if plan.keeps_step:
        message = f"{plan.name}: its users wait for each other, which users of one process can"
        hint = (
            "run it without --processes or --master; a target with two mount points is two "
            "clients: --target NAME=PATH,PATH"
        )
        raise ReplayerError(message, hint=hint)
