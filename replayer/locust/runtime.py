"""The runtime of one process: the engine's users, their slots, and the pump that carries results.

Who leads it is elsewhere: a controller beside it, or a master on another machine.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

import gevent
from gevent import Greenlet
from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.keeper import give_up_on, hung_calls
from replayer.locust import user_context
from replayer.locust.engine_client import EngineClient
from replayer.locust.stats_bridge import LocustStats
from replayer.locust.task_failures import FailedTasks
from replayer.locust.user_context import UserContext
from replayer.measure.health import Health
from replayer.run.client_health import ClientHealth
from replayer.run.doorbell import Doorbell, ResultPump
from replayer.run.mailbox import Mailbox
from replayer.run.prepared_run import PreparedRun
from replayer.run.standstill import Standstill
from replayer.run.targets import explain
from replayer.run.threads import call_in_thread
from replayer.run.user_registry import UserRegistry

__all__ = ["Runtime"]


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
        user_context.join(environment, UserContext(engine, registry, mailbox, len(names)))
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
