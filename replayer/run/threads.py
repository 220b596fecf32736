"""Calls that block, made in a real thread while the calling greenlet waits.

The engine's long calls release the GIL but hold their thread; made in the hub's thread they would
stop every other greenlet. A call on a mount that hangs is given up after a time; its thread cannot
be ended and is remembered, so that the process can still end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import gevent
from gevent.hub import get_hub

from replayer.supervisor import give_up_on

R = TypeVar("R")


def call_in_thread(call: Callable[..., R], *arguments: Any) -> R:  # noqa: ANN401 - as they are
    """Make a blocking call and return its result, or raise what it raised; others run meanwhile."""
    found: R | _Raised = get_hub().threadpool.apply(_caught, (partial(call, *arguments),))
    return _outcome(found)


def call_within(seconds: float, call: Callable[[], R], what: str) -> R:
    """Make a blocking call, for so long at most; ``what`` is what it is done to, for the message.

    Raises:
        TimeoutError: It has not returned; its thread is left behind.
    """
    hub = get_hub()
    # The loop's time stands still while we work without waiting (compiling a long trace does):
    # without this, a timer that is set then is over at once.
    hub.loop.update_now()
    result = hub.threadpool.spawn(_caught, call)
    if not gevent.wait([result], timeout=seconds):
        give_up_on(what)
        raise TimeoutError(f"{what} did not answer within {seconds:g} s")
    return _outcome(cast("R | _Raised", result.get()))


class _Raised:
    """What a call raised: handed over as a value, as gevent prints what a thread raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _caught(call: Callable[[], R]) -> R | _Raised:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - raised again by who waits
        return _Raised(error)


def _outcome(found: R | _Raised) -> R:
    if isinstance(found, _Raised):
        raise found.error
    return found
