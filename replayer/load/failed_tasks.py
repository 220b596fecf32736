"""What the tasks of a locustfile raise: counted as Locust tells of it, kind by kind."""

from dataclasses import dataclass
from types import TracebackType

from locust import User
from locust.env import Environment

from replayer.load.people import place_of, put
from replayer.measure.tasks import TaskFailure

__all__ = ["FailedTasks"]

MOST_KINDS = 20  # chosen: what a person reads; whatever else there is, is counted as one more


@dataclass
class _Kind:
    """What was raised first at a place, and how often it was."""

    raised: str
    place: str | None
    count: int = 0


class FailedTasks:
    """Hears what users of an environment raise, from now on."""

    def __init__(self, environment: Environment) -> None:
        self._event = environment.events.user_error
        self._kinds: dict[tuple[str, str | None], _Kind] = {}
        self._event.add_listener(self._note)

    def unlisten(self) -> None:
        """Count no more."""
        self._event.remove_listener(self._note)

    def found(self) -> tuple[TaskFailure, ...]:
        """Return what was raised until now, the first first."""
        return tuple(
            TaskFailure(raised=kind.raised, place=kind.place, count=kind.count)
            for kind in self._kinds.values()
        )

    def _note(
        self, user_instance: User, exception: BaseException, tb: TracebackType | None, **_: object
    ) -> None:
        del user_instance, tb  # the exception has it
        place = place_of(exception)
        key = (type(exception).__name__, place)
        kind = self._kinds.get(key)
        if kind is None and len(self._kinds) >= MOST_KINDS:
            kind = self._kinds.setdefault(("", None), _Kind("other exceptions", None))
        elif kind is None:
            kind = self._kinds[key] = _Kind(put(exception), place)
        kind.count += 1
