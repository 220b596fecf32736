from typing import Any

from locust.env import Environment

from replayer.locust.failures import MOST_KINDS, FailedTasks


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


def test_requests_that_fail_are_counted_by_their_name_and_others_are_not() -> None:
    failed = FailedTasks(Environment())
    for error in (None, ValueError("500"), ValueError("503"), "no such page"):
        failed.note_request("GET", "/", exception=error, response_time=1.0)
    assert [(each.what, each.raised, each.count) for each in failed.found()] == [
        ("request", "GET /: ValueError: 500", 2),
        ("request", "GET /: no such page", 1),
    ]


def test_ever_new_kinds_take_no_more_room() -> None:
    environment = Environment()
    failed = FailedTasks(environment)
    for number in range(MOST_KINDS + 5):
        fire(environment, type(f"Error{number}", (Exception,), {})())
    (*_, rest) = failed.found()
    assert len(failed.found()) == MOST_KINDS + 1
    assert (rest.raised, rest.count) == ("other exceptions", 5)
