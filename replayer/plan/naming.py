"""How files are told apart where reads are verified, and what cannot be claimed for it.

The engine decides (``native/src/plan/verify.rs``): by their paths, or by their last names alone
where a path may come to mean another file. Here it is said before anything runs.
"""

from replayer.plan.document import Plan


def tells_by_name(plan: Plan) -> bool:
    """Whether files of the same last name are one to whoever verifies."""
    return plan.verifies and _reason(plan) is not None


def say_limits(plan: Plan) -> str | None:
    """Return what verifying cannot claim, in a sentence; None: all, or nothing is verified."""
    reason = _reason(plan)
    if not plan.verifies or reason is None:
        return None
    return (
        f"files are told apart by their last names alone, as {reason}: those of one name count as "
        "one, and no read is found to be stale or lost"
    )


def _reason(plan: Plan) -> str | None:
    ops = {step["op"] for step in plan.steps("call")}
    kinds = {entry[1] for row in plan.body["datasets"] for entry in row["entries"]}
    if "symlink" in ops or "l" in kinds:
        return "there are symbolic links"
    return "directories are made and names changed" if {"rename", "mkdir"} <= ops else None
