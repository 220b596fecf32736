"""The harness's own health: what the client's CPUs did while it measured, and if it stood still.

Read at the begin and end of every measured phase and added up. Whether it was well is judged by the
measure room.
"""

import os
import time
from dataclasses import dataclass, field

from replayer._native import Engine, clock_ns
from replayer.measure.cputime import CpuTime, read_cpu_time
from replayer.measure.health import Health
from replayer.run.standstill import Standstill

__all__ = ["ClientHealth"]


@dataclass(frozen=True)
class _Reading:
    wall_ns: int
    cpu_ns: int
    delay_ns: int
    in_call_ns: int
    outside_ns: int
    still_ns: int
    cpus: CpuTime = field(default_factory=CpuTime)

    def minus(self, other: "_Reading") -> "_Reading":
        return _Reading(
            self.wall_ns - other.wall_ns,
            self.cpu_ns - other.cpu_ns,
            self.delay_ns - other.delay_ns,
            self.in_call_ns - other.in_call_ns,
            self.outside_ns - other.outside_ns,
            self.still_ns - other.still_ns,
            self.cpus.minus(other.cpus),
        )

    def plus(self, other: "_Reading") -> "_Reading":
        return self.minus(_NOTHING.minus(other))


_NOTHING = _Reading(0, 0, 0, 0, 0, 0)


class ClientHealth:
    """Adds up what measured phases cost."""

    def __init__(self, engine: Engine, overhead_ns: float | None, standstill: Standstill) -> None:
        self._engine = engine
        self._standstill = standstill
        self._overhead_ns = overhead_ns
        self._clock_ns = clock_ns()
        self._begin: _Reading | None = None
        self._sum = _NOTHING

    def open(self) -> None:
        """A measured phase begins."""
        self._begin = self._read()

    def close(self) -> None:
        """It has ended."""
        self._sum = self._so_far()
        self._begin = None

    def health(self, calls: int, given_up: int, dropped: int) -> Health:
        """Return the sum until now as the run folder keeps it.

        Args:
            calls: What users made in measured phases.
            given_up: Users that hang in the kernel.
            dropped: Transactions that Locust's listeners did not hear of.
        """
        so_far = self._so_far()
        capacity_ns = so_far.wall_ns * len(os.sched_getaffinity(0))
        cpu_share = min(so_far.cpu_ns / capacity_ns, 1.0) if capacity_ns else 0.0
        outside_share = so_far.outside_ns / capacity_ns if capacity_ns else 0.0
        others_share, stolen_share = so_far.cpus.shares_beside(so_far.cpu_ns)
        return Health(
            client_cpu_share=cpu_share,
            others_cpu_share=others_share,
            stolen_cpu_share=stolen_share,
            outside_ns=so_far.outside_ns,
            outside_cpu_share=min(outside_share, cpu_share),
            # Of many users the engine looks at some and scales up: the sum may go back a little.
            run_queue_delay_ns=max(so_far.delay_ns, 0),
            in_call_ns=so_far.in_call_ns,
            stood_still_ns=so_far.still_ns,
            overhead_ns=self._overhead_ns,
            clock_ns=self._clock_ns,
            calls=calls,
            users_given_up=given_up,
            events_dropped=dropped,
        )

    def _so_far(self) -> _Reading:
        if self._begin is None:
            return self._sum
        return self._sum.plus(self._read().minus(self._begin))

    def _read(self) -> _Reading:
        return _Reading(
            time.monotonic_ns(),
            time.process_time_ns(),
            self._engine.run_queue_delay_ns(),
            self._engine.in_call_ns(),
            self._engine.outside_ns(),
            self._standstill.sum_ns(),
            read_cpu_time(),
        )
