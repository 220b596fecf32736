"""What stands above every page: the run that goes on, what hangs, and what a reader must know."""

from collections.abc import Sequence
from typing import Any

from replayer.measure.health import RunWarning
from replayer.web.run_control import ActiveRun, RunControl

__all__ = ["describe_now"]

CACHE_UNKNOWN = RunWarning(
    kind="other",
    message="the client's caches are left as they are: what was laid out just now is likely in "
    "memory, so reads may not reach the mount",
    hint="choose cold or warm for a stated state of the caches",
)


def describe_now(control: RunControl) -> dict[str, Any]:
    """Return the state of the run control, as JSON."""
    active = control.active
    run = None if active is None else _describe(active)
    target_warnings = _shown(control.target_warnings) if active is None else []
    return {"state": control.state, "run": run, "outlook": target_warnings}


def _describe(active: ActiveRun) -> dict[str, Any]:
    request, tick = active.request, active.status.tick_now
    work = active.status.work_now
    return {
        "id": None if active.folder is None else active.folder.name,
        "scenario": request.workload.plan.name,
        "targets": [target.name for target in request.targets],
        "cache": request.workload.cache,
        "outcome": active.outcome,
        "failure": active.failure,
        "why": active.why,
        "phase": None if tick is None else tick.phase,
        "users": None if tick is None else tick.users,
        "left_s": None if tick is None or tick.left_s is None else max(tick.left_s, 0.0),
        "rate": None if tick is None else tick.ledger.rate,
        "errors": sum(line.errors.total() for line in active.op_totals.lines.values()),
        "work": None if work is None else vars(work),
        "hanging": [{"call": hang.call, "age_s": hang.age_s} for hang in active.status.hanging],
        "warnings": _shown(_warnings(active)),
    }


def _shown(warnings: Sequence[RunWarning]) -> list[dict[str, str | None]]:
    return [{"message": warning.message, "hint": warning.hint} for warning in warnings]


def _warnings(active: ActiveRun) -> list[RunWarning]:
    """Return what is wrong now, or was when the run ended."""
    found = list(active.ended_with if active.run is None else active.run.warnings())
    if active.request.workload.cache == "as-is":
        found.append(CACHE_UNKNOWN)
    return found
