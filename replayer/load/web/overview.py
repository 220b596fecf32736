"""What stands above every page: the run that goes on, what hangs, and what a reader must know."""

from collections.abc import Sequence
from typing import Any

from replayer.load.web.desk import Desk, Playing
from replayer.measure.health import RunWarning

__all__ = ["describe_now"]

CACHE_UNKNOWN = RunWarning(
    kind="other",
    message="the client's caches are left as they are: what was laid out just now is likely in "
    "memory, so reads may not reach the mount",
    hint="choose cold or warm for a stated state of the caches",
)


def describe_now(desk: Desk) -> dict[str, Any]:
    """Return the state of the desk, as JSON."""
    playing = desk.playing
    run = None if playing is None else _describe(playing)
    outlook = _shown(desk.outlook) if playing is None else []
    return {"state": desk.state, "run": run, "outlook": outlook}


def _describe(playing: Playing) -> dict[str, Any]:
    request, tick = playing.request, playing.board.tick_now
    work = playing.board.work_now
    return {
        "id": None if playing.folder is None else playing.folder.name,
        "scenario": request.workload.plan.name,
        "targets": [target.name for target in request.targets],
        "cache": request.workload.cache,
        "outcome": playing.outcome,
        "failure": playing.failure,
        "why": playing.why,
        "phase": None if tick is None else tick.phase,
        "users": None if tick is None else tick.users,
        "left_s": None if tick is None or tick.left_s is None else max(tick.left_s, 0.0),
        "rate": None if tick is None else tick.ledger.rate,
        "errors": sum(line.errors.total() for line in playing.tally.lines.values()),
        "work": None if work is None else vars(work),
        "hanging": [{"call": hang.call, "age_s": hang.age_s} for hang in playing.board.hanging],
        "warnings": _shown(_warnings(playing)),
    }


def _shown(warnings: Sequence[RunWarning]) -> list[dict[str, str | None]]:
    return [{"message": warning.message, "hint": warning.hint} for warning in warnings]


def _warnings(playing: Playing) -> list[RunWarning]:
    """Return what is wrong now, or was when the run ended."""
    found = list(playing.ended_with if playing.stage is None else playing.stage.warnings())
    if playing.request.workload.cache == "as-is":
        found.append(CACHE_UNKNOWN)
    return found
