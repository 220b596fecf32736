"""Calls that block, made in a real thread while the calling greenlet waits.

The engine's long calls release the GIL but hold their thread; made in the hub's thread they would
stop every other greenlet. A call on a mount that hangs is given up after a time; its thread cannot
be ended and is remembered, so that the process can still end.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import gevent
from gevent.hub import get_hub

__all__ = ["call_in_thread", "call_within", "hung_calls"]

R = TypeVar("R")

_hung: list[str] = []


def call_in_thread(call: Callable[..., R], *arguments: Any) -> R:  # noqa: ANN401 - as they are
    """Make a blocking call and return its result, or raise what it raised; others run meanwhile."""
    return get_hub().threadpool.apply(call, arguments)


def call_within(seconds: float, call: Callable[[], R], what: str) -> R:
    """Make a blocking call, for so long at most.

    Args:
        seconds: The bound.
        call: What to do.
        what: What it is done to, for the message.

    Raises:
        TimeoutError: It has not returned; its thread is left behind.
    """
    result = get_hub().threadpool.spawn(call)
    if not gevent.wait([result], timeout=seconds):
        _hung.append(what)
        message = f"{what} has not answered within {seconds:g} s"
        raise TimeoutError(message)
    return cast("R", result.get())


def hung_calls() -> tuple[str, ...]:
    """Return what the calls that never came back were made on."""
    return tuple(_hung)
