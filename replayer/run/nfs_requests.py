"""Keeps, for each second of a measured phase, what the NFS mounts of its targets were asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import gevent
from gevent import Greenlet

from replayer.measure.mountstats import Requests, read_requests, since
from replayer.measure.units import NS_PER_S
from replayer.run.client_health import SECOND_S

if TYPE_CHECKING:
    from pydantic import JsonValue


class NfsRequests:
    """Reads the counters each second; of targets without NFS mounts it has nothing to read."""

    def __init__(
        self,
        mounts: Callable[[int], Sequence[str]],
        now_ns: Callable[[], int],
        keep: Callable[[float, Mapping[str, "JsonValue"]], None],
    ) -> None:
        self._mounts = mounts
        self._now_ns = now_ns
        self._keep = keep
        self._round = 0
        self._begin_ns = 0
        self._before: dict[int, Requests] = {}
        """By target with NFS mounts, in a measured phase."""
        self._looker: Greenlet[[], None] | None = None

    def open(self, targets: Sequence[int], turn: int) -> None:
        """A measured phase of a round begins."""
        self._end_looking()
        self._before = {each: self._read(each) for each in targets if self._mounts(each)}
        self._round, self._begin_ns = turn, self._now_ns()
        if self._before:
            self._looker = gevent.spawn(self._look_each_second)

    def close(self) -> None:
        """It has ended."""
        self._end_looking()
        self._look()
        self._before = {}

    def _end_looking(self) -> None:
        if self._looker is not None:
            self._looker.kill()
            self._looker = None

    def _look_each_second(self) -> None:
        while True:
            gevent.sleep(SECOND_S)
            self._look()

    def _look(self) -> None:
        now_ns = self._now_ns()
        length_s = (now_ns - self._begin_ns) / NS_PER_S
        self._begin_ns = now_ns
        for target, before in self._before.items():
            self._before[target] = now = self._read(target)
            asked = since(before, now)
            if asked:
                fields: dict[str, JsonValue] = {
                    "target": target,
                    "round": self._round,
                    "length_s": round(length_s, 6),
                    "requests": {kind: counts.model_dump() for kind, counts in asked.items()},
                }
                self._keep(round(now_ns / NS_PER_S, 6), fields)

    def _read(self, target: int) -> Requests:
        return read_requests(self._mounts(target))
