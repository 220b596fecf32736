"""What all programs together used of the CPUs of this process, read from /proc/stat.

Held against what a run used itself, it tells who kept users from a CPU.
"""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CpuTime", "read_cpu_time"]

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
LEAST_NS = 20 * TICK_NS
"""Chosen: the kernel counts in ticks of 10 ms; of fewer than this a share says nothing."""
_STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; guests are in user: proc_stat(5)
_STOLEN = 7
_ALL = 8  # the rest, guest and guest_nice, is counted among these


@dataclass(frozen=True)
class CpuTime:
    """CPU time of some CPUs, added up.

    Attributes:
        busy_ns: In which a program ran, or the kernel.
        stolen_ns: Which the hypervisor gave to other machines.
        whole_ns: All of it, idle time too.
    """

    busy_ns: int = 0
    stolen_ns: int = 0
    whole_ns: int = 0

    def plus(self, other: "CpuTime") -> "CpuTime":
        """Return the sum."""
        return CpuTime(
            self.busy_ns + other.busy_ns,
            self.stolen_ns + other.stolen_ns,
            self.whole_ns + other.whole_ns,
        )

    def minus(self, other: "CpuTime") -> "CpuTime":
        """Return what was added since."""
        return CpuTime(
            self.busy_ns - other.busy_ns,
            self.stolen_ns - other.stolen_ns,
            self.whole_ns - other.whole_ns,
        )

    def shares_beside(self, own_ns: float) -> tuple[float, float] | tuple[None, None]:
        """Return the shares of other programs and of other machines; None: too little is known.

        Args:
            own_ns: What the caller and its children used of the same time.
        """
        if self.whole_ns < LEAST_NS:
            return None, None
        others_ns = max(self.busy_ns - own_ns, 0)
        return min(others_ns / self.whole_ns, 1.0), min(max(self.stolen_ns, 0) / self.whole_ns, 1.0)


def read_cpu_time() -> CpuTime:
    """Return the CPU time since boot of the CPUs that this process may use; zeros: not known."""
    own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    found = CpuTime()
    try:
        lines = _STAT.read_text().splitlines()
        for name, *words in map(str.split, lines):
            if name in own:
                ticks = [int(word) * TICK_NS for word in words]
                busy_ns = sum(ticks[place] for place in _BUSY)
                found = found.plus(CpuTime(busy_ns, ticks[_STOLEN], sum(ticks[:_ALL])))
    except (OSError, ValueError, IndexError):  # hidden, or another kernel's
        return CpuTime()
    return found
