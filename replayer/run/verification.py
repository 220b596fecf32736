"""Verifying a run: where it is possible, the last reading, and what the engine found in the end."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from replayer._native import Engine
from replayer.errors import ReplayerError
from replayer.measure.units import NS_PER_S
from replayer.measure.verification import LastReading, Verification, WrongBlocks
from replayer.plan.document import Plan, tells_by_name
from replayer.run.interruption import Interruption, Level
from replayer.run.prepared_run import PreparedRun

BUDGET_S = 120.0  # chosen: what the largest shipped scenario writes, from a mount with 20 MB/s
LEAST_S = 1.0  # chosen: what a small run wrote is read by then


def read_all_back(session: PreparedRun) -> None:
    """Have all that the users wrote be read once and judged, on each target that does not hang.

    Ends in bounded time: an interruption that has come before leaves what is left of the stop
    timeout for it, another one ends it. What was not read is told with the rest.
    """
    request = session.request
    if not request.workload.plan.verifies or request.interruption.level is Level.AT_ONCE:
        return
    for index, target_dir in enumerate(session.target_dirs):
        if target_dir.sandboxes and not target_dir.is_hanging:
            budget_s = _budget(request.interruption, request.spawner.stop_timeout_s)
            with suppress(ReplayerError):  # what hangs there was said, and its folder is left
                target_dir.read_back(session.engine, index, budget_s)


def _budget(interruption: Interruption, stop_timeout_s: float) -> float:
    if interruption.since_s is None:
        return BUDGET_S
    gone_s = time.monotonic() - interruption.since_s
    return max(stop_timeout_s - gone_s, LEAST_S)


def read_verification(engine: Engine, plan: Plan) -> Verification | None:
    """Return what verifying found; None when nothing was verified."""
    text = engine.verification()
    if text is None:
        return None
    found = json.loads(text)
    return Verification.made_of(
        found,
        time_ns=found["ns"],
        wrong_blocks=_wrong_blocks(found["blocks"]),
        by_name=tells_by_name(plan),
        last=None if found["last"] is None else _last_reading(found["last"]),
    )


def _wrong_blocks(blocks: Mapping[str, int]) -> WrongBlocks:
    return WrongBlocks(**{kind.lower(): count for kind, count in blocks.items()})


def _last_reading(found: Mapping[str, Any]) -> LastReading:
    return LastReading.made_of(
        found,
        unverified_bytes=found["unverified_bytes"] + found["mixed_bytes"],
        wrong_blocks=_wrong_blocks(found["blocks"]),
        wrong_files=found["wrong"],
        took_s=found["took_ns"] / NS_PER_S,
    )


def refuse_others(plan: Plan, others: str) -> None:
    """Refuse to verify where data are written by others than this engine's own users.

    Raises:
        ReplayerError: The plan is to be verified.
    """
    if plan.verifies:
        raise ReplayerError(
            f"verify: {others} write data that this process does not know",
            hint="use --verify with users of a scenario in one process, without --processes or "
            "--master",
        )
