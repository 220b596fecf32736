"""Plans: pure, seeded and fingerprinted; nothing here touches a mount or a clock.

A scenario comes in, a document of plan format 1 (FORMAT.md) goes out to an engine, a summary of it
to people.
"""

from replayer.plan.compile import compile_plan
from replayer.plan.document import Plan, PlanError, say_limits, say_warmed, steps_of, tells_by_name
from replayer.plan.replaying import ReplayOptions, choose_requests, compile_replay
from replayer.plan.summary import PlanSummary, describe_plan

__all__ = [
    "Plan",
    "PlanError",
    "PlanSummary",
    "ReplayOptions",
    "choose_requests",
    "compile_plan",
    "compile_replay",
    "describe_plan",
    "say_limits",
    "say_warmed",
    "steps_of",
    "tells_by_name",
]
