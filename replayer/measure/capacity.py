"""Which CPUs processes have in common, and how much of them they used together.

Processes of one host may use the same CPUs, others, or some of each other's; shares that are of
different CPUs are never added. Pure: facts in, figures out.
"""

from collections.abc import Iterable, Sequence

from replayer.measure.facts import MachineFacts, parse_cpu_list

__all__ = ["busiest_shares", "count_cpus", "differ_in_cpus", "share_of_all"]

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
    """Return the shares of CPU time where they are the highest, as of one process.

    Looked at are the CPUs that each process may use, and those of processes that have some in
    common; what counts there is all that was used by processes that could go nowhere else. A mean
    over more CPUs would hide a process that had none left.

    Returns:
        The two shares; that with most of the first without the second is the highest.
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
