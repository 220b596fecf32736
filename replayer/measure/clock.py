"""The clocks of the Python side: monotonic time to measure, wall-clock time to name things.

Nothing here is subtracted from a wall-clock time, ever: it jumps. Durations come from
``monotonic_ns`` alone.
"""

import time
from datetime import UTC, datetime

__all__ = ["monotonic_ns", "utc_stamp", "utc_text"]


def monotonic_ns() -> int:
    """Return CLOCK_MONOTONIC in nanoseconds, the clock that the engine stamps its calls with."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def utc_stamp() -> str:
    """Return the wall-clock time in UTC as run ids begin: ``20261121T024839``."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S")


def utc_text() -> str:
    """Return the wall-clock time in UTC for a person: ``2026-11-21T02:48:39Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
