"""Bounded waits for calls and tasks on a mount that may never come back.

A wait reports the call that hangs, and gives up after a limit. A single call runs in a thread of
its own.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from replayer.errors import ReplayerError
from replayer.measure.units import NS_PER_S
from replayer.run.interruption import Interruption, Level
from replayer.run.progress import Hang
from replayer.run.targets import (
    MountError,
    NamedTarget,
    check_place,
    explain,
    refuse_aliases,
)
from replayer.supervisor import give_up_on

R = TypeVar("R")
ANSWER_S = 20.0  # chosen, as in runs: a mount that takes longer for one call is taken for dead
HASTE_S = 2.0  # chosen: of those so many are left once whoever waits was interrupted
POLL_S = 0.05


def ask(path: Path, call: Callable[[], R], interruption: Interruption | None = None) -> R:
    """Make one call on a mount, and turn its failure into a refusal.

    An interruption shortens the wait; the call itself is not interrupted.

    Raises:
        ReplayerError: It fails, or has not answered in time.
    """
    results: list[R] = []
    errors: list[Exception] = []

    def make_call() -> None:
        try:
            results.append(call())
        except Exception as error:  # noqa: BLE001 - raised again by who waits
            errors.append(error)

    thread = threading.Thread(target=make_call, daemon=True)
    thread.start()
    began = time.monotonic()
    _wait(thread, interruption)
    if results:
        return results[0]
    if not errors:
        give_up_on(str(path))
        waited = f"{time.monotonic() - began:.0f} s"
        message = f"{path}: the mount did not answer within {waited}"
        raise MountError(message, hint="check that its server is up") from TimeoutError()
    error = errors[0]
    if isinstance(error, REFUSED):
        raise refusal_of(path, error) from error
    raise error


def check_targets(targets: Sequence[NamedTarget]) -> None:
    """Look at targets before anything is made on them.

    Raises:
        ReplayerError: One cannot be meant, cannot be used or does not answer, or two are the same.
    """
    for target in targets:
        for path in target.paths:
            ask(path, partial(check_place, target, path))
    if len(targets) > 1:
        ask(targets[0].paths[0], partial(refuse_aliases, targets))


REFUSED = (OSError, ValueError, RuntimeError)
"""What the engine raises for a call on a mount that it cannot make."""


def refusal_of(path: Path, error: Exception) -> ReplayerError:
    """Return the refusal for a call on a mount that failed."""
    if isinstance(error, OSError):
        return explain(path, error)
    if isinstance(error, ValueError):
        return ReplayerError(f"{path}: {error}", hint="only folders that a run created are used")
    return MountError(f"{path}: {error}")  # this machine cannot confine users at all


def _wait(thread: threading.Thread, interruption: Interruption | None) -> None:
    if interruption is None:
        thread.join(ANSWER_S)
        return
    deadline = time.monotonic() + ANSWER_S
    while thread.is_alive() and time.monotonic() < deadline:
        thread.join(POLL_S)
        if interruption.level > Level.NONE:
            deadline = min(deadline, time.monotonic() + HASTE_S)


Found_co = TypeVar("Found_co", covariant=True)

STUCK_NS = 5_000_000_000  # as the engine's: a call that takes longer is reported
SAID_AGAIN_S = 10.0  # chosen: seldom enough for a log
FLUSHES = frozenset({"sync", "syncfs"})
FLUSHED_LATER = 10  # chosen: a fifth of 64 GB (vm.dirty_ratio) in 20 minutes are 11 MB/s


class Watched(Protocol):
    """What of a task is looked at."""

    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        """Calls under way for longer than that, longest first: op, path, age."""


class MountTask(Watched, Protocol[Found_co]):
    """Work under way: a task of the engine's, or what can be watched like one."""

    @property
    def finished(self) -> bool:
        """Whether it is over."""

    @property
    def done_entries(self) -> int:
        """How much was dealt with."""

    @property
    def total_entries(self) -> int:
        """How much there is; 0: it is not known."""

    @property
    def done_bytes(self) -> int:
        """How many bytes were moved."""

    def cancel(self) -> None:
        """End it soon."""

    def result(self) -> Found_co:
        """Return what it found, or raise what ended it."""


class Watchdog:
    """One wait for one task."""

    def __init__(
        self, hung_s: float, end_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Wait for the first call that hangs for ``hung_s``, or ``end_s`` after ``end``."""
        self._hung_s = hung_s
        self._end_s = end_s
        self._clock = clock
        self._ended: float | None = None
        self._said: dict[str, float] = {}
        self.last: Hang | None = None
        """The call that has hung for the longest, as of the last look; None if none does."""
        self.is_over = False

    def end(self) -> None:
        """The work was cancelled: it shall end soon."""
        if self._ended is None:
            self._ended = self._clock()

    def look(self, task: Watched) -> tuple[Hang, ...]:
        """Look at a task, and return what must be said: a call that hangs, now and then."""
        hanging = task.stuck(STUCK_NS)[:1]
        hangs = tuple(Hang(f"{op} {path}", age / NS_PER_S) for op, path, age in hanging)
        self.last = hangs[0] if hangs else None
        too_long = any(age / NS_PER_S > self._limit_s(op) for op, _, age in hanging)
        ended_long_ago = self._ended is not None and self._clock() - self._ended > self._end_s
        self.is_over = too_long or ended_long_ago
        return tuple(hang for hang in hangs if self._is_news(hang))

    def give_up(self, name: str, path: str) -> MountError:
        """Leave the task's threads behind, for whoever ends the process, and return the refusal."""
        give_up_on(name)
        message = f"{path}: {self.last or 'a call hangs'}; it was abandoned"
        return MountError(message, hint="check that its server is up")

    def _limit_s(self, op: str) -> float:
        """Return how long a call may last: one that writes out all that is dirty has much to do."""
        return self._hung_s * (FLUSHED_LATER if op in FLUSHES else 1)

    def _is_news(self, hang: Hang) -> bool:
        now = self._clock()
        is_news = now - self._said.get(hang.call, -math.inf) >= SAID_AGAIN_S
        if is_news:
            self._said = {hang.call: now}
        return is_news


def finish(task: MountTask[R], path: Path, watchdog: Watchdog, cancelled: Callable[[], bool]) -> R:
    """Wait for a task without a display, saying what hangs, and return what it found.

    ``cancelled`` is asked again and again whether it shall end soon.

    Raises:
        MountError: It failed, or a call does not come back: nothing should be asked there again.
        InterruptedRunError: It was cancelled.
    """
    while not task.finished:
        if cancelled():
            task.cancel()
            watchdog.end()
        for hang in watchdog.look(task):
            sys.stderr.write(f"{hang}\n")
        if watchdog.is_over:
            raise watchdog.give_up(str(path), str(path))
        time.sleep(POLL_S)
    try:
        return task.result()
    except OSError as error:
        raise explain(Path(os.fsdecode(error.filename or path)), error) from error
