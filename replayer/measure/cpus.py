"""Which CPUs processes have in common, and how much of them was used: by them, and by all programs.

Processes of one host may use the same CPUs, others, or some of each other's; shares that are of
different CPUs are never added. What all programs used is read from /proc/stat: held against what a
run used itself, it tells who kept users from a CPU.
"""

import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from replayer.measure.facts import MachineFacts, parse_cpu_list

Cpus = frozenset[tuple[str, int]]
"""Each with its host: those of two hosts are never the same."""
Used = tuple[MachineFacts, float, float]
"""A process, with ``client_cpu_share`` and ``outside_cpu_share`` of its health."""


def count_cpus(machines: Iterable[MachineFacts]) -> int:
    """Return how many CPUs processes may use together: each counts once."""
    return len(frozenset[tuple[str, int]]().union(*map(_cpus_of, machines)))


def differ_in_cpus(machines: Iterable[MachineFacts]) -> bool:
    """Whether some may use other CPUs of their machine than others, or fewer."""
    return len({(machine.cpus, machine.cpu_list) for machine in machines}) > 1


def busiest_shares(used: Sequence[Used]) -> tuple[float, float]:
    """Return the two shares of CPU time where the first without the second is the highest.

    Looked at are the CPUs that each process may use, and those of processes that have some in
    common; what counts there is all that was used by processes that could go nowhere else. A mean
    over more CPUs would hide a process that had none left.
    """
    sets = [(_cpus_of(machine), client, outside) for machine, client, outside in used]
    groups = {cpus for cpus, _, _ in sets}
    groups |= _joined(groups)
    return max((_shares(group, sets) for group in groups), key=lambda shares: shares[0] - shares[1])


def share_of_all(machine: MachineFacts, used: Iterable[Used]) -> float:
    """Return what processes used together of the CPUs of one of them, as ``client_cpu_share``.

    Of one that may use other CPUs too, as much counts as it shares CPUs.
    """
    own = _cpus_of(machine)
    return sum(len(_cpus_of(each) & own) / len(own) * client for each, client, _ in used)


def _shares(group: Cpus, sets: Iterable[tuple[Cpus, float, float]]) -> tuple[float, float]:
    inside = [(len(cpus) / len(group), *shares) for cpus, *shares in sets if cpus <= group]
    client = sum(weight * share for weight, share, _ in inside)
    outside = sum(weight * share for weight, _, share in inside)
    return min(client, 1.0), min(outside, client, 1.0)


def _joined(groups: Iterable[Cpus]) -> set[Cpus]:
    """Return sets that have no CPU in common, each made of those that have."""
    found: list[Cpus] = []
    for group in groups:
        touching = [each for each in found if each & group]
        found = [each for each in found if not each & group]
        found.append(group.union(*touching))
    return set(found)


def _cpus_of(machine: MachineFacts) -> Cpus:
    """Return a process's CPUs; where they were not written down, as many from the first on."""
    listed = parse_cpu_list(machine.cpu_list) if machine.cpu_list else frozenset[int]()
    numbers = listed or range(max(machine.cpus, 1))
    return frozenset((machine.host, number) for number in numbers)


TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
LEAST_NS = 20 * TICK_NS
"""Chosen: the kernel counts in ticks of 10 ms; of fewer than this a share says nothing."""
_STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; guests are in user: proc_stat(5)
_STOLEN = 7
_ALL = 8  # the rest, guest and guest_nice, is counted among these


class Added:
    """Figures that are added up, and taken from later ones, one by one: a dataclass of them."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(operator.add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(operator.sub, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class CpuTime(Added):
    """CPU time of some CPUs, added up."""

    busy_ns: int = 0
    """In which a program ran, or the kernel."""
    stolen_ns: int = 0
    """Which the hypervisor gave to other machines."""
    whole_ns: int = 0
    """All of it, idle time too."""

    def shares_beside(self, own_ns: float) -> tuple[float, float] | tuple[None, None]:
        """Return the shares of other programs and of other machines; None: too little is known.

        ``own_ns`` is what the caller and its children used of the same time.
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
                found += CpuTime(busy_ns, ticks[_STOLEN], sum(ticks[:_ALL]))
    except (OSError, ValueError, IndexError):  # hidden, or another kernel's
        return CpuTime()
    return found
