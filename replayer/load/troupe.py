"""What plays a session in one process: the engine's users, their seats, and who carries results.

Who leads it is elsewhere: a conductor beside it, or a master on another machine.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

import gevent
from gevent import Greenlet
from locust.env import Environment

from replayer.errors import ReplayerError
from replayer.keeper import give_up_on, hung_calls
from replayer.load import sessions
from replayer.load.answers import Mailbox
from replayer.load.band import OwnBand
from replayer.load.doorbell import Courier, Doorbell
from replayer.load.failed_tasks import FailedTasks
from replayer.load.gauge import Gauge
from replayer.load.locust_statistics import Statistics
from replayer.load.roster import Roster
from replayer.load.session import Session
from replayer.load.sessions import Crew
from replayer.load.standstill import Standstill
from replayer.load.targets import explain
from replayer.load.threads import call_in_thread
from replayer.measure.health import Health

__all__ = ["Troupe"]


class Troupe:
    """A session's users and helpers.

    Args:
        session: What they play.
        environment: Locust's.
        numbers: The users that are seated here.

    Attributes:
        band: What a conductor leads.
        courier: Who carries intervals and transactions.
        statistics: The bridge into Locust's.
        failed_tasks: What the users' tasks raise, and which of their other requests fail.
    """

    def __init__(self, session: Session, environment: Environment, numbers: Sequence[int]) -> None:
        self._session = session
        engine = session.engine
        names = tuple(ground.target.name for ground in session.grounds)
        self._roster = roster = Roster(engine, numbers, session.request.workload.plan.users)
        self.statistics = Statistics(environment, engine.begin_epoch_ns, names)
        mailbox = Mailbox(engine)
        self._doorbell = Doorbell(engine, roster, mailbox)
        self.courier = Courier(engine, self._doorbell, self.statistics)
        self._standstill = Standstill(engine.now_ns, self._note_standstill)
        self._gauge = Gauge(engine, session.overhead_ns, self._standstill)
        self.band = OwnBand(session, environment, roster, self._gauge)
        self.band.follow(self.courier)
        sessions.join(environment, Crew(engine, roster, mailbox, len(names)))
        self.failed_tasks = FailedTasks(environment)
        self.statistics.hand_others_to(self.failed_tasks.note_request)
        self._carrier: Greenlet[[], None] | None = None
        self._hung_before = len(hung_calls())

    @property
    def hung(self) -> bool:
        """Whether calls hang that can never be ended."""
        return bool(self.band.given_up) or len(hung_calls()) > self._hung_before

    def start(self) -> None:
        """Listen to the engine, and carry."""
        self._standstill.start()
        self._doorbell.start()
        self.courier.watch()
        self._carrier = gevent.spawn(self.courier.run)

    def close(self) -> None:
        """End all threads, then carry what they left."""
        self._standstill.stop()
        self._roster.close()
        stuck = call_in_thread(self._session.engine.close)
        self.band.give_up(stuck)
        for hung in self.band.given_up:
            give_up_on(f"{hung.op} {hung.path}")
        self.courier.finish()
        if self._carrier is not None:
            self._carrier.join()
        self.courier.carry()
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
        path = self._session.chronicle.folder.path / name
        return explain(path, OSError(number, os.strerror(number)))

    def _note_standstill(self, begin_ns: int, length_ns: int) -> None:
        """Keep in the run folder when this client stood still; the sum is told without it, too."""
        with suppress(ReplayerError):
            self._session.chronicle.note(
                "standstill", round(begin_ns / 1e9, 6), {"length_s": round(length_ns / 1e9, 6)}
            )

    def health(self) -> Health:
        """Return what the harness cost and suffered until now."""
        calls = self.band.ledger.measured_calls
        return self._gauge.health(calls, self.band.stuck_users(), self.courier.dropped)
