"""Calls on a mount made in a thread of their own, given up after a time."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from replayer.errors import ReplayerError
from replayer.keeper import give_up_on
from replayer.run.interruption import Interruption, Level
from replayer.run.targets import MountError, explain

__all__ = ["ANSWER_S", "ask"]

R = TypeVar("R")
ANSWER_S = 20.0  # chosen, as in runs: a mount that takes longer for one call is taken for dead
HASTE_S = 2.0  # chosen: of those so many are left once whoever waits was interrupted
POLL_S = 0.05


def ask(path: Path, call: Callable[[], R], interruption: Interruption | None = None) -> R:
    """Make one call on a mount, and turn its failure into a refusal.

    Args:
        path: Where.
        call: What to do.
        interruption: Shortens the wait; the call itself is not interrupted.

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
        message = f"{path}: the mount does not answer within {waited}"
        raise MountError(message, hint="is its server up?") from TimeoutError()
    error = errors[0]
    if isinstance(error, OSError):
        raise explain(path, error) from error
    if isinstance(error, ValueError):
        message = f"{path}: {error}"
        raise ReplayerError(message, hint="only folders that a run made are used") from error
    if isinstance(error, RuntimeError):  # this machine cannot confine users at all
        raise MountError(f"{path}: {error}") from error
    raise error


def _wait(thread: threading.Thread, interruption: Interruption | None) -> None:
    if interruption is None:
        thread.join(ANSWER_S)
        return
    deadline = time.monotonic() + ANSWER_S
    while thread.is_alive() and time.monotonic() < deadline:
        thread.join(POLL_S)
        if interruption.level > Level.NONE:
            deadline = min(deadline, time.monotonic() + HASTE_S)
