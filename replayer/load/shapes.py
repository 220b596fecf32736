"""What a load shape raises, or returns that no load can be made of: heard, and an end of the run.

Locust itself takes a shape that dies for one that has come to its end.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import gevent
from locust import LoadTestShape, exception
from locust.env import Environment

from replayer.load.people import place_of, put
from replayer.measure.tasks import TaskFailure

__all__ = ["ShapeWatch"]

Shape = Callable[[], Any]
ENDS: tuple[type[Exception], ...] = tuple(filter(None, [getattr(exception, "StopTest", None)]))
"""Locust's own word for an end, where it has one: not all of its versions do."""


class ShapeWatch:
    """Hears what the load shape of an environment raises, if it has one, until another does.

    Attributes:
        found: What ended it; it cannot raise twice.
    """

    def __init__(self, environment: Environment) -> None:
        self.found: tuple[TaskFailure, ...] = ()
        shape = environment.shape_class
        if shape is not None:
            shape.tick = _Tick(_own_tick(shape), self._note)  # type: ignore[method-assign]

    def _note(self, raised: str, place: str | None) -> None:
        self.found = (TaskFailure(what="shape", raised=raised, place=place, count=1),)


class _Tick:
    """A shape's own tick, in whose mistakes the shape ends."""

    def __init__(self, tick: Shape, note: Callable[[str, str | None], None]) -> None:
        self.tick = tick
        self._note = note

    def __call__(self) -> Any:  # noqa: ANN401 - as theirs
        try:
            wanted = self.tick()
        except ENDS:
            raise
        except (Exception, gevent.Timeout) as error:  # noqa: BLE001 - whatever a person's code raises
            self._note(put(error), place_of(error))
            return None
        if wanted is None or _is_load(wanted):
            return wanted
        message = f"tick() must return (users, spawn_rate) or None, got {wanted!r}"
        code = getattr(self.tick, "__code__", None)
        place = None if code is None else f"{code.co_filename}:{code.co_firstlineno}"
        self._note(message, place)
        return None


def _own_tick(shape: LoadTestShape) -> Shape:
    tick: Shape = shape.tick
    return tick.tick if isinstance(tick, _Tick) else tick


def _is_load(wanted: object) -> bool:
    """Whether Locust can make a load of it: users, users a second and, perhaps, their classes."""
    if not isinstance(wanted, tuple | list) or len(wanted) not in {2, 3}:
        return False
    return all(isinstance(number, Real) for number in wanted[:2])
