from typing import Any

from locust.env import Environment

from replayer.load.failed_tasks import MOST_KINDS, FailedTasks


def fire(environment: Environment, error: BaseException) -> None:
    user: Any = None
    environment.events.user_error.fire(user_instance=user, exception=error, tb=None)


def test_what_is_raised_alike_is_counted_together_until_nobody_listens() -> None:
    environment = Environment()
    failed = FailedTasks(environment)
    for error in (ValueError("page 1"), ValueError("page 2"), KeyError("x")):
        fire(environment, error)
    failed.unlisten()
    fire(environment, KeyError("y"))
    assert [(each.raised, each.count) for each in failed.found()] == [
        ("ValueError: page 1", 2),
        ("KeyError: 'x'", 1),
    ]


def test_ever_new_kinds_take_no_more_room() -> None:
    environment = Environment()
    failed = FailedTasks(environment)
    for number in range(MOST_KINDS + 5):
        fire(environment, type(f"Error{number}", (Exception,), {})())
    (*_, rest) = failed.found()
    assert len(failed.found()) == MOST_KINDS + 1
    assert (rest.raised, rest.count) == ("other exceptions", 5)
