"""What the tasks of a locustfile raise, and which of their requests fail: counted kind by kind."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from locust import User
from locust.env import Environment

from replayer.locust.user_code import place_of, put
from replayer.measure.tasks import TaskFailure

__all__ = ["FailedTasks"]

MOST_KINDS = 20  # chosen: what a person reads; whatever else there is, is counted as one more
OTHERS = {"task": "other exceptions", "request": "other requests"}


_What = Literal["task", "request"]


@dataclass
class _Kind:
    """What was raised first at a place, and how often it was."""

    what: _What
    raised: str
    place: str | None
    count: int = 0


class FailedTasks:
    """Hears what users of an environment raise, from now on."""

    def __init__(self, environment: Environment) -> None:
        self._event = environment.events.user_error
        self._kinds: dict[tuple[_What, str, str | None], _Kind] = {}
        self._event.add_listener(self._note)

    def unlisten(self) -> None:
        """Count no more."""
        self._event.remove_listener(self._note)

    def found(self) -> tuple[TaskFailure, ...]:
        """Return what was raised until now, the first first."""
        return tuple(
            TaskFailure(what=kind.what, raised=kind.raised, place=kind.place, count=kind.count)
            for kind in self._kinds.values()
        )

    def _note(
        self, user_instance: User, exception: BaseException, tb: TracebackType | None, **_: object
    ) -> None:
        del user_instance, tb  # the exception has it
        place = place_of(exception)
        key = type(exception).__name__
        self._count("task", (key, place), lambda: _Kind("task", put(exception), place))

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
        self._count("request", key, lambda: _Kind("request", f"{request}: {said}", None))

    def _count(self, what: _What, key: tuple[str, str | None], make: Callable[[], _Kind]) -> None:
        kind = self._kinds.get((what, *key))
        if kind is None and len(self._kinds) >= MOST_KINDS:
            rest = _Kind(what, OTHERS[what], None)
            kind = self._kinds.setdefault((what, "", None), rest)
        elif kind is None:
            kind = self._kinds[(what, *key)] = make()
        kind.count += 1
