"""Dropping the machine's caches, as work that can be watched: it syncs all mounts; one may hang.

Whether it may be done is asked here, too. When it is done is the cache procedures' business.
"""

import os
import time
from contextlib import suppress

from gevent.hub import get_hub

from replayer._native import evict_machine_caches
from replayer.errors import EXIT_ENVIRONMENT, ReplayerError

__all__ = ["MachineEviction", "may_evict_machine"]

SWITCH = "/proc/sys/vm/drop_caches"


class EvictionError(ReplayerError):
    """The kernel has refused."""

    exit_code = EXIT_ENVIRONMENT


def may_evict_machine() -> bool:
    """Whether this process may drop the machine's caches: root may, outside of most containers."""
    with suppress(OSError):
        os.close(os.open(SWITCH, os.O_WRONLY | os.O_CLOEXEC))
        return True
    return False


class MachineEviction:
    """One sync of all mounts and dropping of all caches, under way in a thread."""

    done_entries = total_entries = done_bytes = 0

    def __init__(self) -> None:
        self._began_ns = time.monotonic_ns()
        self._answer = get_hub().threadpool.spawn(evict_machine_caches)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return bool(self._answer.ready())

    def cancel(self) -> None:
        """Nothing ends a sync: whoever waits for it leaves it behind."""

    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        """Return the call, what it is made on, and for how long, if that is longer than a limit."""
        age_ns = time.monotonic_ns() - self._began_ns
        return [("sync", "all mounts of this machine", age_ns)] if age_ns > after_ns else []

    def result(self) -> None:
        """Refuse to go on with caches that are not cold.

        Raises:
            ReplayerError: They could not be dropped.
        """
        if not self._answer.get():
            message = f"{SWITCH}: the machine's caches could not be dropped"
            raise EvictionError(message, hint="run it with --cache as-is or warm")
