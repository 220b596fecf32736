"""The engine's doorbell in gevent's hub: one eventfd and one watcher for all users.

What must be quick (waking greenlets) is done in the watcher's callback; what may take its time
(statistics, listeners) is done by one greenlet, in bounded batches, so that a busy hub delays
figures and never users.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

import gevent
from gevent.event import AsyncResult, Event
from gevent.hub import get_hub

from replayer._native import Engine, Interval, Outcome, Transaction
from replayer.run.user_registry import UserRegistry


class Mailbox:
    """Open tickets.

    Tickets and answers are handled in the hub's thread alone, so an answer cannot come before its
    ticket is known.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[int, AsyncResult[Outcome]] = {}

    def ask(self, user: int, command: bytes) -> Outcome:
        """Have a user's native thread do a command; waits for the answer while others run."""
        ticket = self._engine.submit(user, command)
        answer: AsyncResult[Outcome] = AsyncResult()
        self._waiting[ticket] = answer
        try:
            outcome = answer.get()
            assert outcome is not None  # noqa: S101 - only deliver() sets it, to an outcome
            return outcome
        finally:
            self._waiting.pop(ticket, None)

    def tell(self, user: int, command: bytes) -> None:
        """Have a user's native thread do a command, after those before it; nobody waits for it."""
        with suppress(RuntimeError):  # the user has ended, and what it did with it
            self._engine.submit(user, command)

    def deliver(self, outcomes: Iterable[Outcome]) -> None:
        """Wake those who wait for these; an answer that nobody waits for is dropped."""
        for outcome in outcomes:
            answer = self._waiting.get(outcome.ticket)
            if answer is not None:
                answer.set(outcome)


READABLE = 1
BATCH = 500  # chosen: listeners at 10 µs each hold the hub for 5 ms
LISTEN_S = 0.25  # chosen: who has something for it rings; this is for what rang too early
REST_S = 0.02  # chosen: fifty rounds a second are live enough, and leave the hub to the users' code


class TransactionListeners(Protocol):
    """Who hears of single transactions."""

    def is_anyone_listening(self) -> bool:
        """Whether there is anybody."""

    def fire(self, transaction: Transaction, user: object | None) -> None:
        """Report one transaction, and the user that made it if it is still there."""


class Doorbell:
    """Brings what the engine has to those who wait for it."""

    def __init__(self, engine: Engine, registry: UserRegistry, mailbox: Mailbox) -> None:
        self._engine = engine
        self.registry = registry
        self._mailbox = mailbox
        self._rung = Event()
        self._watcher = get_hub().loop.io(engine.doorbell, READABLE)

    def start(self) -> None:
        """Listen."""
        self._watcher.start(self.answer)

    def stop(self) -> None:
        """Listen no more."""
        self._watcher.stop()
        self._watcher.close()

    def wait(self, timeout_s: float) -> None:
        """Wait until it has rung, or for so long."""
        self._rung.wait(timeout_s)
        self._rung.clear()

    def answer(self) -> None:
        """It has rung: wake everybody whom that may concern."""
        with suppress(BlockingIOError):
            os.read(self._engine.doorbell, 8)
        self.deliver()
        self._rung.set()

    def deliver(self) -> None:
        """Wake those whose threads have ended, or whose answers have come."""
        self.registry.finish(self._engine.drain_finished())
        self._mailbox.deliver(self._engine.drain_outcomes())


class ResultPump:
    """Carries intervals to who takes them, and transactions to Locust's listeners."""

    def __init__(self, engine: Engine, doorbell: Doorbell, listeners: TransactionListeners) -> None:
        self._engine = engine
        self._doorbell = doorbell
        self._listeners = listeners
        self._takers: list[Callable[[Interval], None]] = []
        self.dropped = 0
        self._watched = False
        self._over = False

    def hand_to(self, taker: Callable[[Interval], None]) -> None:
        """Hand every interval to one more."""
        self._takers.append(taker)

    def run(self) -> None:
        """Carry until it is over."""
        while not self._over:
            self._doorbell.wait(LISTEN_S)
            self.carry()
            gevent.sleep(REST_S)

    def finish(self) -> None:
        """Let ``run`` return when it has carried what it holds."""
        self._over = True

    def carry(self) -> None:
        """Carry what is there."""
        self.watch()
        for interval in self._engine.drain_intervals():
            for taker in self._takers:
                taker(interval)
        self._carry_transactions()
        # Draining silences the doorbell for everybody, also for what has come meanwhile. Nothing
        # has rung for that: who waits for a ring is the one that carries.
        self._doorbell.deliver()

    def watch(self) -> None:
        """Have the engine hand over each transaction if anyone listens; not for nothing."""
        wanted = self._listeners.is_anyone_listening()
        if wanted is not self._watched:
            self._watched = wanted
            self._engine.watch_transactions(watched=wanted)

    def _carry_transactions(self) -> None:
        if not self._watched:
            return
        transactions, dropped = self._engine.drain_transactions()
        self.dropped += dropped
        for at, transaction in enumerate(transactions, start=1):
            self._listeners.fire(transaction, self._doorbell.registry.user_of(transaction.user))
            if at % BATCH == 0:
                gevent.sleep(0)
