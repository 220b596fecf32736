"""Whether running a plan changes what was laid out, so that the next segment needs it anew.

Pure: read off the plan's document and the facts of its traces.
"""

from collections.abc import Mapping
from typing import Any

from replayer.ops import ALTERING
from replayer.plan import Plan

__all__ = ["changes_files"]

WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC of Linux x86-64


def changes_files(plan: Plan) -> bool:
    """Whether running the plan leaves other files behind than were laid out."""
    if any(trace.changes_files for trace in plan.traces):
        return True
    return any(map(_changes, plan.steps("call")))


def _changes(step: Mapping[str, Any]) -> bool:
    if step["op"] == "open":
        return bool(step["flags"] & WRITE_FLAGS)
    return step["op"] in ALTERING
