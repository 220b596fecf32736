"""What a person sees while a recording runs: one line that is written over, on a terminal only.

The line goes to stderr and leaves the cursor at its beginning, so that what the command prints
stands where it would without us.
"""

import sys
import time
from typing import Protocol, TextIO

from replayer.capture.order import Verbosity
from replayer.measure.units import format_bytes, format_count

__all__ = ["GrowingLog", "Progress", "make_progress", "say"]

EVERY_NS = 500_000_000
_CLEAR = "\x1b[K"


class GrowingLog(Protocol):
    """What a recorder writes."""

    @property
    def size_bytes(self) -> int:
        """What has been written so far."""

    def estimate_events(self) -> int:
        """Return about how many calls were recorded."""


class Progress(Protocol):
    """Tells how far something is."""

    def line(self, text: str) -> None:
        """Show a line in place of the last one, now and then."""

    def recording(self, log: GrowingLog) -> None:
        """Show time, size and events of a recording."""

    def clear(self) -> None:
        """Take the line away."""


def say(text: str) -> None:
    """Print a message of ours, at the beginning of a line."""
    sys.stderr.write(f"replayer: {text}\n")
    sys.stderr.flush()


def make_progress(verbosity: Verbosity, stream: TextIO) -> Progress:
    """Return what suits the stream."""
    if verbosity is Verbosity.PROGRESS and stream.isatty():
        return _Shown(stream)
    return _Silent()


class _Silent:
    """Says nothing."""

    def line(self, text: str) -> None:
        """Ignore it."""

    def recording(self, log: GrowingLog) -> None:
        """Ignore it."""

    def clear(self) -> None:
        """Have nothing to take away."""


class _Shown:
    """Writes over its own line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began_ns = time.monotonic_ns()
        self._shown_ns = 0

    def line(self, text: str) -> None:
        """Show it if the last one has stood for a while."""
        now = time.monotonic_ns()
        if now - self._shown_ns >= EVERY_NS:
            self._shown_ns = now
            self._write(f"{text}{_CLEAR}\r")

    def recording(self, log: GrowingLog) -> None:
        """Show time, size and events of a recording."""
        if time.monotonic_ns() - self._shown_ns < EVERY_NS:
            return
        seconds = (time.monotonic_ns() - self._began_ns) // 10**9
        clock = f"{seconds // 60}:{seconds % 60:02}"
        events = format_count(log.estimate_events())
        self.line(f"recording {clock} · {format_bytes(log.size_bytes)} · about {events} calls")

    def clear(self) -> None:
        """Take the line away."""
        self._write(f"\r{_CLEAR}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
