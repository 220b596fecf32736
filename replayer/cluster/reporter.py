"""What a worker tells its master by itself: how it is, and every interval, until it is safe there.

Results are numbered, kept until the master has acknowledged them, and sent again after a while: a
broken connection delays them and loses none. The worker's own run folder holds them as well.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replayer._native import Interval
from replayer.cluster import wire
from replayer.cluster.wire import WorkerState

AGAIN_S = 3.0  # chosen: many times what an answer takes
MOST_EVENTS = 500  # chosen: lines a message; what is left goes with the next one
MOST_WAITING = 3600
"""Chosen: an hour of intervals; beyond it they are in the worker's own run folder alone."""

Send = Callable[[str, dict[str, Any]], None]


@dataclass
class _Unacknowledged:
    data: dict[str, Any]
    sent_s: float


@dataclass
class Reporter:
    """The results of one worker on their way."""

    send: Send
    events: Path
    _fresh: list[list[Any]] = field(default_factory=list)
    _waiting: dict[int, _Unacknowledged] = field(default_factory=dict)
    _number: int = 0
    _read_bytes: int = 0

    def add(self, interval: Interval) -> None:
        """Take what was measured."""
        self._fresh.append(wire.pack_interval(interval))

    def tell(self, state: WorkerState) -> None:
        """Send how the worker is, what is new, and again what nobody has acknowledged."""
        now_s = time.monotonic()
        data: dict[str, Any] = {"state": state.pack()}
        events = self._new_events()
        if (self._fresh or events) and len(self._waiting) < MOST_WAITING:
            self._number += 1
            data |= {"number": self._number, "intervals": self._fresh, "events": events}
            self._fresh = []
            self._waiting[self._number] = _Unacknowledged(data, now_s)
        self.send(wire.NEWS, data)
        for parcel in self._waiting.values():
            if now_s - parcel.sent_s > AGAIN_S:
                parcel.sent_s = now_s
                self.send(wire.NEWS, {**parcel.data, "state": data["state"]})

    def is_safe(self, told: Mapping[str, Any]) -> None:
        """Forget what the master has."""
        self._waiting.pop(told["number"], None)

    @property
    def is_done(self) -> bool:
        """Whether the master has everything."""
        return not self._fresh and not self._waiting and not self._more_events()

    def _more_events(self) -> bool:
        return self.events.exists() and self.events.stat().st_size > self._read_bytes

    def _new_events(self) -> list[str]:
        """Return whole lines that were not told yet."""
        if not self._more_events():
            return []
        with self.events.open("rb") as file:
            file.seek(self._read_bytes)
            found: list[str] = []
            for line in file:
                if len(found) == MOST_EVENTS or not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                with suppress(ValueError):  # a full disk cuts lines short
                    wire.read_event(line)
                    found.append(line.decode())
        return found
