"""Verifying a run: where it is possible, and what the engine found in the end."""

import json

from replayer.engine import Engine
from replayer.errors import ReplayerError
from replayer.measure.verification import Verification, WrongBlocks
from replayer.plan import Plan

__all__ = ["read_verification", "refuse_others"]


def read_verification(engine: Engine) -> Verification | None:
    """Return what verifying found; None when nothing was verified."""
    text = engine.verification()
    if text is None:
        return None
    found = json.loads(text)
    blocks = found["blocks"]
    return Verification(
        reads=found["reads"],
        verified_bytes=found["verified_bytes"],
        unverified_bytes=found["unverified_bytes"],
        mixed_bytes=found["mixed_bytes"],
        time_ns=found["ns"],
        wrong_blocks=WrongBlocks(
            torn=blocks["TORN"],
            swapped=blocks["SWAPPED"],
            lost=blocks["LOST"],
            stale=blocks["STALE"],
        ),
        blind=found["blind"],
    )


def refuse_others(plan: Plan, others: str) -> None:
    """Refuse to verify where data are written by others than this engine's own users.

    Args:
        plan: What is run.
        others: Who they are, for a person.

    Raises:
        ReplayerError: The plan is to be verified.
    """
    if plan.verifies:
        message = f"verify: {others} write what this process does not know of"
        hint = "verify with the users of a scenario in one process, without --processes or --master"
        raise ReplayerError(message, hint=hint)
