"""Answers to the commands of users written in Python, brought to the greenlets that wait."""

from collections.abc import Iterable
from contextlib import suppress

from gevent.event import AsyncResult

from replayer._native import Engine, Outcome

__all__ = ["Mailbox"]


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
