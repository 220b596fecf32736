"""The workload of a worker: compiled from its own scenario or trace, or taken from its master.

Pure but for reading files. A worker that compiles must come to what the master has; one that was
given nothing takes the master's plan, which names no path.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from replayer.errors import ReplayerError
from replayer.load.options import Settings
from replayer.load.workload import Load, Workload, make_workload
from replayer.plan import Plan

__all__ = ["agreed_workload"]

SHORT = 12  # hexadecimal digits of a fingerprint that a person compares: chosen


def agreed_workload(settings: Settings, told: Mapping[str, Any]) -> Workload:
    """Return what this worker shall run.

    Args:
        settings: The worker's own.
        told: The master's order.

    Raises:
        ReplayerError: It would run something else than the master.
    """
    if settings.scenario is None and settings.replay is None:
        return _taken(told)
    own = replace(settings, seed=told["seed"], changes=tuple(told["changes"]), cache=told["cache"])
    load = Load(told["users"], told["run_time_s"], told["rounds"])
    found = make_workload(own, load)
    if found.plan.fingerprint != told["fingerprint"]:
        message = (
            f"{found.source}: its plan is {found.plan.fingerprint[:SHORT]}, the master's "
            f"{told['fingerprint'][:SHORT]}"
        )
        hint = (
            "give master and workers the same scenario and version, or start the worker without "
            'one: locust -f "$(replayer locustfile)" --worker'
        )
        raise ReplayerError(message, hint=hint)
    return found


def _taken(told: Mapping[str, Any]) -> Workload:
    body = json.loads(told["plan"])
    if body.get("traces"):
        message = f"{told['source']}: replays traces, which do not come from the master"
        hint = "give the worker the same --scenario or --trace as the master"
        raise ReplayerError(message, hint=hint)
    plan = Plan(body)
    return Workload(
        plan=plan,
        source=told["source"],
        duration_ns=plan.duration_ns,
        ramp_up_ns=0,
        cache=told["cache"],
        thresholds=(),
        pace=str(body["pace"]["kind"]),
    )
