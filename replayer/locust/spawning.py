"""What keeps Locust from starting users, which it logs and goes on from: an end of the run here.

Its greenlets that start users die of what users' own constructors raise, and of stages of a load
shape that cannot be begun. The users that there are would go on alone, or would be waited for.
"""

from typing import TYPE_CHECKING

from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.locust.shapes import ENDS
from replayer.locust.user_code import place_of, put

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gevent import Greenlet  # no generic one at run time

__all__ = ["SpawnWatch"]


class SpawnWatch:
    """Looks at the greenlets of an environment that start users, from the next one on."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._before = tuple(spawner for spawner, _ in self._spawners())

    def check(self) -> None:
        """Refuse to go on where users that were asked for are not started.

        Raises:
            ReplayerError: What was raised, and where.
        """
        for spawner, hint in self._spawners():
            error = spawner.exception
            if error is None or isinstance(error, ENDS) or spawner in self._before:
                continue
            place = place_of(error)
            message = f"Locust could not start users: {put(error)}"
            message += "" if place is None else f" at {place}"
            raise ReplayerError(message, hint=f"{hint}; Locust's log tells the whole of it")

    def _spawners(self) -> "Iterator[tuple[Greenlet[..., object], str]]":
        """Yield those that there are, and what to look at when one of them dies."""
        runner = self._environment.runner
        if runner is not None and runner.spawning_greenlet is not None:
            yield runner.spawning_greenlet, "a user's __init__ must not raise"
        if runner is not None and runner.shape_greenlet is not None:
            yield runner.shape_greenlet, "each stage of a load shape must be one that can be begun"
