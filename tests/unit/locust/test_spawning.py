"""Locust's greenlets that start users, and what they die of."""

from collections.abc import Iterator

import gevent
import pytest
from locust import LoadTestShape, User
from locust.env import Environment
from locust.runners import LocalRunner

from replayer.errors import ReplayerError
from replayer.locust.failures import SpawnWatch


class Fragile(User):
    """Is never made."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        message = "no such account"
        raise LookupError(message)


@pytest.fixture
def runner() -> Iterator[LocalRunner]:
    made = Environment(user_classes=[Fragile]).create_local_runner()
    yield made
    made.quit()


def start(runner: LocalRunner) -> None:
    runner.start(2, 2)
    assert runner.spawning_greenlet is not None
    gevent.wait([runner.spawning_greenlet])


def test_users_that_cannot_be_made_are_told_and_not_again_in_the_next_run(
    runner: LocalRunner,
) -> None:
    watch = SpawnWatch(runner.environment)
    watch.check()
    start(runner)
    with pytest.raises(
        ReplayerError, match="could not start users: LookupError: no such account"
    ) as refused:
        watch.check()
    assert "__init__" in refused.value.hint
    next_one = SpawnWatch(runner.environment)
    next_one.check()
    start(runner)
    with pytest.raises(ReplayerError, match="no such account"):
        next_one.check()


class Torn(LoadTestShape):
    """Has a stage that cannot be begun."""

    def tick(self) -> tuple[int, float]:
        message = "no such stage"
        raise LookupError(message)


def test_what_a_load_shape_dies_of_is_put_down_to_no_user(runner: LocalRunner) -> None:
    runner.environment.shape_class = Torn()  # type: ignore[no-untyped-call]
    watch = SpawnWatch(runner.environment)
    runner.start_shape()
    assert runner.shape_greenlet is not None
    gevent.wait([runner.shape_greenlet])
    with pytest.raises(ReplayerError, match="LookupError: no such stage") as refused:
        watch.check()
    assert "load shape" in refused.value.hint
    assert "__init__" not in refused.value.hint
