"""What the users of a locustfile cannot be run beside, in or on: they go on from where they are.

Their tasks are Python, which nobody can begin anew for another turn of a target; and each of them
takes a number that the scenario's users do not get. Pure.
"""

from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.load.users import (
    has_file_users,
    has_file_users_alone,
    has_python_users,
    has_scenario_users,
)
from replayer.plan import Plan

__all__ = ["refuse_mixtures"]


def refuse_mixtures(environment: Environment, plan: Plan, targets: int, rounds: int) -> None:
    """Refuse turns that users of a locustfile cannot take part in, and roles that they would take.

    And targets on which not as many of them would work: they stay on the one that they are dealt.

    Args:
        environment: Whose users they are.
        plan: What the scenario's users do.
        targets: How many.
        rounds: How many turns of each.

    Raises:
        ReplayerError: With what can be done instead.
    """
    if has_file_users(environment) and rounds > 1:
        message = f"--rounds {rounds}: tasks of a locustfile cannot be begun anew for another turn"
        raise ReplayerError(message, hint="leave it out, and compare several runs")
    if has_file_users_alone(environment) and plan.users % targets:
        message = (
            f"{plan.users} users of a locustfile cannot be dealt to {targets} targets evenly: "
            "more would work on the first ones, and be taken for faster mounts"
        )
        fewer = plan.users - plan.users % targets
        numbers = " or ".join(f"-u {each}" for each in (fewer, fewer + targets) if each)
        raise ReplayerError(message, hint=f"{numbers}, or run it once for each target")
    if not has_scenario_users(environment):
        return
    if has_file_users(environment) and targets > 1:
        message = (
            f"{targets} targets have their turns one after the other, and tasks of a locustfile "
            "cannot be begun anew for another turn"
        )
        hint = "run it once for each target, and compare the runs; or run the locustfile alone"
        raise ReplayerError(message, hint=hint)
    if has_python_users(environment) and plan.body.get("roles"):
        message = "a scenario with roles needs all users, and some are of a locustfile"
        raise ReplayerError(message, hint="leave the locustfile out")
