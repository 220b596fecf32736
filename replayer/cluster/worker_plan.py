"""The workload of a worker: compiled from its own scenario or trace, or taken from its master.

Pure but for reading files. A worker that compiles must come to what the master has; one that was
given nothing takes the master's plan, which names no path.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from replayer.errors import ReplayerError
from replayer.plan import Plan
from replayer.run.cluster_options import DEFAULT_TIMEOUT_S
from replayer.run.options import Settings
from replayer.run.workload import Load, Workload, make_workload
from replayer.scenario import names_file
from replayer.trace import TraceFacts, load_facts, shipped_traces

__all__ = ["agreed_workload", "refuse_differences"]

SHORT = 12  # hexadecimal digits of a fingerprint that a person compares: chosen


def agreed_workload(settings: Settings, told: Mapping[str, Any]) -> Workload:
    """Return what this worker shall run.

    Args:
        settings: The worker's own.
        told: The master's order.

    Raises:
        ReplayerError: It would run something else than the master, or read what that names.
    """
    if settings.scenario is None and settings.replay is None:
        return _taken(told)
    _refuse_paths(settings, told)
    own = replace(settings, seed=told["seed"], changes=tuple(told["changes"]), cache=told["cache"])
    load = Load(told["users"], told["run_time_s"], told["rounds"])
    found = make_workload(own, load)
    if found.plan.fingerprint != told["fingerprint"]:
        message = (
            f"{found.source}: its plan is {found.plan.fingerprint[:SHORT]}, the master's "
            f"{told['fingerprint'][:SHORT]}"
        )
        alike = "scenario" if settings.replay is None else "trace, options of the replay (--pace …)"
        hint = (
            f"give master and workers the same {alike} and version, or start the worker without "
            'one: locust -f "$(replayer locustfile)" --worker'
        )
        raise ReplayerError(message, hint=hint)
    return found


def refuse_differences(
    settings: Settings, options: argparse.Namespace, told: Mapping[str, Any]
) -> None:
    """Refuse what this worker was told to do differently from its master.

    Args:
        settings: The worker's own.
        options: Its command line.
        told: The master's order.

    Raises:
        ReplayerError: Names the first option.
    """
    timeout_s = None if options.worker_timeout == DEFAULT_TIMEOUT_S else options.worker_timeout
    own: dict[str, tuple[object, object]] = {
        "-u": (options.num_users, told["users"]),
        "-t": (options.run_time, told["run_time_s"]),
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
            raise ReplayerError(message, hint="leave it out here: the master decides that for all")


def _refuse_paths(settings: Settings, told: Mapping[str, Any]) -> None:
    """Refuse changes by which a master would have a worker read what its user has not named."""
    for change in told["changes"]:
        if change not in settings.changes and names_file(change):
            message = f"--set {change}: names a file, and no path is taken from a master"
            hint = "give this worker the same --set, or start it without a scenario of its own"
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
    message = f"{source}: replays trace {row['name']}, which does not come with the program"
    hint = "traces do not come from the master: give the worker the same --scenario or --trace"
    raise ReplayerError(message, hint=hint)
