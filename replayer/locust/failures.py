"""Failures of people's own code: users' tasks, load shapes, and starts of users.

Failures of tasks are counted. A failure of a load shape or of a start ends the run: Locust would
log it and go on.
"""

import math
from collections.abc import Callable, Collection
from numbers import Real
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import gevent
from locust import LoadTestShape, User, exception
from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.locust.user_code import place_of, put
from replayer.measure.clients import TaskFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gevent import Greenlet  # no generic one at run time

Shape = Callable[[], Any]
ENDS: tuple[type[Exception], ...] = tuple(filter(None, [getattr(exception, "StopTest", None)]))
"""Locust's own word for an end, where it has one: not all of its versions do."""


class ShapeWatch:
    """Hears what the load shape of an environment raises, if it has one, until another does."""

    def __init__(self, environment: Environment) -> None:
        self.found: tuple[TaskFailure, ...] = ()
        """What ended it; it cannot raise twice."""
        self._environment = environment
        shape = environment.shape_class
        if shape is not None:
            shape.tick = _Tick(_own_tick(shape), self._kinds, self._note)  # type: ignore[method-assign]

    def _kinds(self) -> Collection[type[User]]:
        return self._environment.user_classes

    def _note(self, raised: str, place: str | None) -> None:
        self.found = (TaskFailure(what="shape", raised=raised, place=place, count=1),)


class _Tick:
    """A shape's own tick, in whose mistakes the shape ends."""

    def __init__(
        self,
        tick: Shape,
        kinds: Callable[[], Collection[type[User]]],
        note: Callable[[str, str | None], None],
    ) -> None:
        self.tick = tick
        self._kinds = kinds
        self._note = note

    def __call__(self) -> Any:  # noqa: ANN401 - as theirs
        try:
            wanted = self.tick()
        except ENDS:
            raise
        except (Exception, gevent.Timeout) as error:  # noqa: BLE001 - whatever a person's code raises
            self._note(put(error), place_of(error))
            return None
        wrong = None if wanted is None else _wrong(wanted, self._kinds())
        if wrong is None:
            return wanted
        code = getattr(self.tick, "__code__", None)
        place = None if code is None else f"{code.co_filename}:{code.co_firstlineno}"
        self._note(f"tick() {wrong}, got {wanted!r}", place)
        return None


def _own_tick(shape: LoadTestShape) -> Shape:
    tick: Shape = shape.tick
    return tick.tick if isinstance(tick, _Tick) else tick


def _wrong(wanted: object, kinds: Collection[type[User]]) -> str | None:
    """Say why Locust can make no load of it: users, users a second and, perhaps, their classes."""
    pair = "must return (users, spawn_rate) or None"
    if not isinstance(wanted, tuple | list) or len(wanted) not in {2, 3}:
        return pair
    users, rate, *classes = wanted
    if not all(isinstance(number, Real) for number in (users, rate)):
        return pair
    if not 0 <= users < math.inf:
        return "must return a finite number of users, at least 0"
    if not 0 < rate < math.inf:
        return "must return a spawn_rate above 0"
    if classes and classes[0] is not None and not _are_among(classes[0], kinds):
        return "must return user classes of this run, in a list"
    return None


def _are_among(classes: object, kinds: Collection[type[User]]) -> bool:
    return isinstance(classes, Collection) and all(each in kinds for each in classes)


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
            raise ReplayerError(message, hint=f"{hint}; Locust's log has the full traceback")

    def _spawners(self) -> "Iterator[tuple[Greenlet[..., object], str]]":
        """Yield those that there are, and what to look at when one of them dies."""
        runner = self._environment.runner
        if runner is not None and runner.spawning_greenlet is not None:
            yield runner.spawning_greenlet, "a user's __init__ must not raise"
        if runner is not None and runner.shape_greenlet is not None:
            yield runner.shape_greenlet, "each stage of a load shape must have valid values"


MOST_KINDS = 20  # chosen: what a person reads; whatever else there is, is counted as one more
OTHERS = {"task": "other exceptions", "request": "other requests"}


_What = Literal["task", "request"]


class FailedTasks:
    """Hears what users of an environment raise, from now on."""

    def __init__(self, environment: Environment) -> None:
        self._event = environment.events.user_error
        self._kinds: dict[tuple[_What, str, str | None], TaskFailure] = {}
        self._event.add_listener(self._note)

    def unlisten(self) -> None:
        """Count no more."""
        self._event.remove_listener(self._note)

    def found(self) -> tuple[TaskFailure, ...]:
        """Return what was raised until now, the first first."""
        return tuple(self._kinds.values())

    def _note(
        self, user_instance: User, exception: BaseException, tb: TracebackType | None, **_: object
    ) -> None:
        del user_instance, tb  # the exception has it
        place = place_of(exception)
        self._count("task", (type(exception).__name__, place), lambda: put(exception))

    def note_request(
        self,
        request_type: str,
        name: str,
        exception: BaseException | str | None = None,
        **_: object,
    ) -> None:
        """Count a request that is none of the engine's, as Locust tells of it, if it failed."""
        if not exception:
            return
        said = put(exception) if isinstance(exception, BaseException) else str(exception)
        request = f"{request_type} {name}"
        key = (f"{request} {type(exception).__name__}", None)
        self._count("request", key, lambda: f"{request}: {said}")

    def _count(self, what: _What, kind: tuple[str, str | None], put_it: Callable[[], str]) -> None:
        key = (what, *kind)
        if key not in self._kinds and len(self._kinds) >= MOST_KINDS:
            key, put_it = (what, "", None), lambda: OTHERS[what]
        known = self._kinds.get(key)
        if known is None:
            first = TaskFailure(what=what, raised=put_it(), place=key[2], count=1)
            self._kinds[key] = first
        else:
            self._kinds[key] = known.model_copy(update={"count": known.count + 1})
