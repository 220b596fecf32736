"""A queue of which theory knows the times: servers, who waits for them, and a bucket of tokens.

Part of the file system in user space, which runs under the system's Python.
"""

import heapq
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

LAWS: dict[str, Callable[[random.Random, float], float]] = {
    "constant": lambda _, mean_s: mean_s,
    "exponential": lambda drawn, mean_s: drawn.expovariate(1 / mean_s),
    "lognormal": lambda drawn, mean_s: mean_s * drawn.lognormvariate(-0.125, 0.5),
}
"""How long one is served: each with that mean."""


@dataclass(frozen=True)
class Bucket:
    """Each that is served takes tokens; as many are there at the begin, and come in a second."""

    size: float
    refill_per_s: float
    unit: str = "call"
    """For what it takes one: a call, a byte that it moves, or a second for which it is served."""


class Station:
    """Serves in the order of arrival. Its clock is ahead: a sleep that is late delays nobody else.

    Attributes:
        served: How many have been served.
    """

    def __init__(
        self,
        servers: int,
        mean_s: float,
        law: str,
        bucket: Bucket | None = None,
        seed: int | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._free_s = [0.0] * servers
        self._mean_s = mean_s
        self._draw = LAWS[law]
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._bucket = bucket
        self._due_s = -math.inf
        """When the bucket would be full again (a leaky bucket as a meter: ITU-T I.371)."""
        self.served = 0

    def end_s(self, now_s: float, moved: float = 0) -> float:
        """Return when somebody who arrives now, and moves so many bytes, has been served."""
        with self._lock:
            begin_s, lasts_s = max(now_s, self._free_s[0]), self._draw(self._random, self._mean_s)
            if self._bucket is not None:
                tokens = {"call": 1.0, "byte": moved, "second": lasts_s}[self._bucket.unit]
                begin_s = self._take(self._bucket, tokens, begin_s)
            end_s = begin_s + lasts_s
            heapq.heapreplace(self._free_s, end_s)
            self.served += 1
            return end_s

    def serve(self, moved: float = 0) -> None:
        """Wait until it has been served."""
        now_s = time.monotonic()
        time.sleep(max(self.end_s(now_s, moved) - now_s, 0))

    def _take(self, bucket: Bucket, tokens: float, begin_s: float) -> float:
        begin_s = max(begin_s, self._due_s - (bucket.size - tokens) / bucket.refill_per_s)
        self._due_s = max(self._due_s, begin_s) + tokens / bucket.refill_per_s
        return begin_s
