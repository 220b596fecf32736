"""What master and workers agree on before anything is created: the targets' names, and the plan.

A worker with a scenario of its own compiles it with the master's numbers, and must get the master's
plan. A worker without a scenario takes the master's plan, which names no path.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replayer._native import Interval
from replayer.cluster.wire import PROTOCOL
from replayer.cluster.worker_pool import LostWorkerError, WorkerPool
from replayer.errors import ReplayerError
from replayer.measure.facts import MachineFacts
from replayer.plan.document import Plan
from replayer.run.options import ReplaySettings, Settings
from replayer.run.prepared_run import RunRequest, chosen_targets
from replayer.run.roles import DEFAULT_TIMEOUT_S, ClusterSettings
from replayer.run.verification import refuse_others
from replayer.run.workload import Workload, make_workload
from replayer.scenario.overrides import names_file
from replayer.trace.facts import TraceFacts, load_facts
from replayer.trace.shipped import shipped_traces


@dataclass(frozen=True)
class Agreement:
    """Workers that can work on one run."""

    pool: WorkerPool
    targets: tuple[Mapping[str, Any], ...]
    """What the first of them says of each target, as run.json has it."""
    procedure: str
    """How caches are brought into their state, in words."""
    machine: MachineFacts
    """The first one's; each client of the run has its own."""
    terms: ClusterSettings
    """How long they are waited for, and what becomes of the run when one is lost."""
    watch: Callable[[Interval], None]


def names_of(pool: WorkerPool, settings: Settings) -> tuple[str, ...]:
    """Return the names of the targets: the master's if it was given any, else the first worker's.

    Workers may have more targets than the master names.

    Raises:
        ReplayerError: A worker speaks another protocol, or does not have these targets.
    """
    own = settings.targets or settings.reuse
    first: tuple[str, ...] = tuple(pool.workers[0].hello["targets"])
    wanted = tuple(target.name for target in chosen_targets(settings)) if own else first
    for worker in pool.workers:
        spoken = worker.hello["protocol"]
        if spoken != PROTOCOL:
            message = f"{worker}: uses protocol {spoken}, this master uses {PROTOCOL}"
            raise ReplayerError(message, hint="install the same version of replayer on both")
        names = tuple(worker.hello["targets"])
        if not set(wanted) <= set(names) or (not own and names != wanted):
            raise ReplayerError(
                f"{worker}: its targets are {', '.join(names)}, the targets of the run are "
                f"{', '.join(wanted)}",
                hint="use the same names everywhere: --target NAME=PATH; paths may differ",
            )
    return wanted


def agree(
    pool: WorkerPool,
    request: RunRequest,
    terms: ClusterSettings,
    watch: Callable[[Interval], None],
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
        "run_time_s": settings.run_time_s,
        "rounds": request.rounds,
        "segment_ns": workload.plan.duration_ns,
        "seed": settings.seed,
        "changes": list(settings.changes),
        "replay": None if settings.replay is None else _shape_of(settings.replay),
        "cache": workload.cache,
        "source": workload.source,
        "keep": settings.keep,
        "timeout_s": terms.timeout_s,
    }
    found = pool.order_all(pool.living, "prepare", told)
    for worker in pool.workers:
        if worker.lost is not None:
            message = f"{worker} is lost: it {worker.lost}"
            raise LostWorkerError(message, hint="nothing has run yet; start it again")
    for worker, facts in zip(pool.living, found, strict=True):
        worker.facts = facts
    return Agreement(
        pool=pool,
        targets=tuple(found[0]["targets"]),
        procedure="; ".join(dict.fromkeys(facts["procedure"] for facts in found)),
        machine=MachineFacts.model_validate(found[0]["machine"]),
        terms=terms,
        watch=watch,
    )


def _refuse_signals(plan: Plan) -> None:
    """Refuse to deal users to several processes who wait for each other's signals.

    A signal is known to the engine whose user gave it: those elsewhere would wait until their
    limits, and be counted as users who have not seen what was there.
    """
    if plan.keeps_step:
        raise ReplayerError(
            f"{plan.name}: its users wait for each other, which works only in one process",
            hint="run it without --processes or --master; for two mount points use --target "
            "NAME=PATH,PATH",
        )


SHAPE = ("pace", "speed", "rate", "loops", "requests")
SHORT = 12  # hexadecimal digits of a fingerprint that a person compares: chosen


def agreed_workload(settings: Settings, told: Mapping[str, Any]) -> Workload:
    """Return what this worker shall run.

    Raises:
        ReplayerError: It would run something else than the master, or read what that names.
    """
    if settings.scenario is None and settings.replay is None:
        return _taken(told)
    _refuse_paths(settings, told)
    replay = settings.replay
    own = replace(
        settings,
        replay=replay and _shaped(replay, told["replay"] or {}),
        users=told["users"],
        run_time_s=told["run_time_s"],
        seed=told["seed"],
        changes=tuple(told["changes"]),
        cache=told["cache"],
    )
    found = make_workload(own, told["rounds"])
    found = replace(found, plan=found.plan.lasting(told["segment_ns"]))
    if found.plan.fingerprint != told["fingerprint"]:
        message = (
            f"{found.source}: its plan is {found.plan.fingerprint[:SHORT]}, the plan of the master "
            f"is {told['fingerprint'][:SHORT]}"
        )
        alike = "scenario" if settings.replay is None else "trace, options of the replay (--pace …)"
        hint = (
            f"give master and workers the same {alike} and version; or start the worker without a "
            'scenario: locust -f "$(replayer locustfile)" --worker'
        )
        raise ReplayerError(message, hint=hint)
    return found


def _shape_of(replay: ReplaySettings) -> dict[str, Any]:
    """Return what makes the plan of a replay, beside the trace."""
    return {name: getattr(replay, name) for name in SHAPE}


def _shaped(replay: ReplaySettings, told: Mapping[str, Any]) -> ReplaySettings:
    """Return a worker's replay with what the master's has, where the worker was told nothing."""
    usual = _shape_of(ReplaySettings(replay.trace))
    taken = {name: told[name] for name in told if getattr(replay, name) == usual[name]}
    if taken.get("requests") is not None:
        taken["requests"] = tuple(taken["requests"])
    return replace(replay, **taken)


def refuse_differences(settings: Settings, terms: ClusterSettings, told: Mapping[str, Any]) -> None:
    """Refuse what this worker was told to do differently from its master.

    Raises:
        ReplayerError: Names the first option.
    """
    timeout_s = None if terms.timeout_s == DEFAULT_TIMEOUT_S else terms.timeout_s
    own: dict[str, tuple[object, object]] = {
        "-u": (settings.users, told["users"]),
        "-t": (settings.run_time_s, told["run_time_s"]),
        "--rounds": (settings.rounds, told["rounds"]),
        "--seed": (settings.seed, told["seed"]),
        "--set": (list(settings.changes) or None, told["changes"]),
        "--cache": (settings.cache, told["cache"]),
        "--keep": (settings.keep, told["keep"]),
        "--worker-timeout": (timeout_s, told["timeout_s"]),
    }
    for name, (mine, masters) in own.items():
        if mine is not None and mine != masters:
            message = f"{name} {_shown(mine)}: the master has {_shown(masters)}"
            raise ReplayerError(
                message, hint="leave it out here; the master sets it for all workers"
            )


def _refuse_paths(settings: Settings, told: Mapping[str, Any]) -> None:
    """Refuse changes by which a master would have a worker read what its user has not named."""
    for change in told["changes"]:
        if change not in settings.changes and names_file(change):
            message = f"--set {change}: names a file, and a worker takes no path from the master"
            hint = "give this worker the same --set, or start it without a scenario"
            raise ReplayerError(message, hint=hint)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _taken(told: Mapping[str, Any]) -> Workload:
    body = json.loads(told["plan"])
    plan = Plan(body, tuple(_shipped(row, str(told["source"])) for row in body.get("traces", ())))
    return Workload(
        plan=plan,
        source=told["source"],
        duration_ns=plan.duration_ns,
        ramp_up_ns=0,
        cache=told["cache"],
        thresholds=(),
        pace=str(body["pace"]["kind"]),
    )


def _shipped(row: Mapping[str, Any], source: str) -> TraceFacts:
    """Return the shipped trace that is the master's; no path comes from there."""
    for folder in shipped_traces().values():
        facts = load_facts(str(folder), Path())
        if facts.sha256 == row["sha256"]:
            return facts
    message = f"{source}: replays trace {row['name']}, which is not a shipped trace"
    hint = "the master does not send traces: give the worker the same --scenario or --trace"
    raise ReplayerError(message, hint=hint)
