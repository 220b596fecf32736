"""The runtime of one process: the engine's users, their slots, the result pump, failures of tasks.

A controller leads it: in this process, or that of a master on another machine.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

import gevent
from gevent import Greenlet
from locust import User
from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.locust import users
from replayer.locust.engine_client import EngineClient
from replayer.locust.stats_bridge import LocustStats
from replayer.locust.user_code import place_of, put
from replayer.locust.users import UserContext
from replayer.measure.health import Health
from replayer.measure.tasks import TaskFailure
from replayer.run.client_health import ClientHealth, Standstill
from replayer.run.doorbell import Doorbell, Mailbox, ResultPump
from replayer.run.prepared_run import PreparedRun
from replayer.run.targets import explain
from replayer.run.threads import call_in_thread
from replayer.run.user_registry import UserRegistry
from replayer.supervisor import give_up_on, hung_calls

__all__ = ["FailedTasks", "Runtime"]


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


class Runtime:
    """A session's users and helpers.

    Args:
        session: What they play.
        environment: Locust's.
        numbers: The users that are seated here.

    Attributes:
        client: What a controller leads.
        result pump: Who carries intervals and transactions.
        statistics: The bridge into Locust's.
        failed_tasks: What the users' tasks raise, and which of their other requests fail.
    """

    def __init__(
        self, session: PreparedRun, environment: Environment, numbers: Sequence[int]
    ) -> None:
        self._session = session
        engine = session.engine
        names = tuple(target_dir.target.name for target_dir in session.target_dirs)
        self._registry = registry = UserRegistry(
            engine, numbers, session.request.workload.plan.users
        )
        self.statistics = LocustStats(environment, engine.begin_epoch_ns, names)
        mailbox = Mailbox(engine)
        self._doorbell = Doorbell(engine, registry, mailbox)
        self.pump = ResultPump(engine, self._doorbell, self.statistics)
        self._standstill = Standstill(engine.now_ns, self._note_standstill)
        self._gauge = ClientHealth(engine, session.overhead_ns, self._standstill)
        self.client = EngineClient(session, environment, registry, self._gauge)
        self.client.follow(self.pump)
        users.join(environment, UserContext(engine, registry, mailbox, len(names)))
        self.failed_tasks = FailedTasks(environment)
        self.statistics.hand_others_to(self.failed_tasks.note_request)
        self._carrier: Greenlet[[], None] | None = None
        self._hung_before = len(hung_calls())

    @property
    def hung(self) -> bool:
        """Whether calls hang that can never be ended."""
        return bool(self.client.given_up) or len(hung_calls()) > self._hung_before

    def start(self) -> None:
        """Listen to the engine, and carry."""
        self._standstill.start()
        self._doorbell.start()
        self.pump.watch()
        self._carrier = gevent.spawn(self.pump.run)

    def close(self) -> None:
        """End all threads, then carry what they left."""
        self._standstill.stop()
        self._registry.close()
        stuck = call_in_thread(self._session.engine.close)
        self.client.give_up(stuck)
        for hung in self.client.given_up:
            give_up_on(f"{hung.op} {hung.path}")
        self.pump.finish()
        if self._carrier is not None:
            self._carrier.join()
        self.pump.carry()
        self._doorbell.stop()

    def release(self) -> None:
        """Leave Locust's events alone: it counts by itself again."""
        self.statistics.release()
        self.failed_tasks.unlisten()

    def record_failure(self) -> ReplayerError | None:
        """Return why the record is not whole; None when it is."""
        error = self._session.engine.record_error()
        if error is None:
            return None
        name, number = error
        path = self._session.writer.folder.path / name
        return explain(path, OSError(number, os.strerror(number)))

    def _note_standstill(self, begin_ns: int, length_ns: int) -> None:
        """Keep in the run folder when this client stood still; the sum is told without it, too."""
        with suppress(ReplayerError):
            self._session.writer.note(
                "standstill", round(begin_ns / 1e9, 6), {"length_s": round(length_ns / 1e9, 6)}
            )

    def health(self) -> Health:
        """Return what the harness cost and suffered until now."""
        calls = self.client.ledger.measured_calls
        return self._gauge.health(calls, self.client.stuck_users(), self.pump.dropped)
