"""What users and load shapes of a locustfile do not go with: they go on from where they are.

Tasks are Python, which nobody can begin anew for another turn of a target, and neither can a load
shape; each user of a locustfile takes a number that the scenario's users do not get. Pure.
"""

from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.locust.users import (
    has_file_users,
    has_file_users_alone,
    has_python_users,
    has_scenario_users,
)
from replayer.measure import format_many
from replayer.plan import Plan

__all__ = ["refuse_mixtures"]


def refuse_mixtures(environment: Environment, plan: Plan, targets: int, rounds: int) -> None:
    """Refuse turns that a locustfile cannot take part in, and roles that its users would take.

    And targets on which not as many of them would work: they stay on the one that they are dealt.

    Args:
        environment: Whose users and load shape they are.
        plan: What the scenario's users do.
        targets: How many.
        rounds: How many turns of each.

    Raises:
        ReplayerError: With what can be done instead.
    """
    if environment.shape_class is not None:
        _refuse_turns_of_a_shape(plan, targets, rounds)
    if has_file_users(environment) and rounds > 1:
        message = f"--rounds {rounds}: tasks of a locustfile cannot be begun anew for another turn"
        raise ReplayerError(message, hint="leave it out, and compare several runs")
    if has_file_users_alone(environment) and plan.users % targets:
        message = (
            f"{format_many(plan.users, 'user')} of a locustfile cannot be dealt to {targets} "
            "targets evenly: more would work on the first ones, and be taken for faster mounts"
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


def _refuse_turns_of_a_shape(plan: Plan, targets: int, rounds: int) -> None:
    """Refuse what would have other load than the shape says, or another one in each turn."""
    if targets > 1:
        message = f"a load shape runs on one target at a time, got {targets}"
        raise ReplayerError(message, hint="run it once for each target, and compare the runs")
    if rounds > 1:
        message = f"--rounds {rounds}: a load shape cannot be begun anew for another round"
        raise ReplayerError(message, hint="leave it out, and compare several runs")
    each = plan.body["stop"]["transactions"]
    if each is not None:
        message = (
            f"a load shape says when its users come and go, and here each is done after {each:,} "
            "of its transactions (iterations of a scenario, --loops of a trace)"
        )
        hint = "leave the load shape out, or have time end it: duration, or -t with a trace"
        raise ReplayerError(message, hint=hint)
