"""What a run's machines are, in words: of one, and of several together."""

from collections.abc import Iterable, Sequence

from replayer.measure import MachineFacts, count_cpus, format_bytes, format_many

__all__ = ["describe_machines", "each_once"]


def describe_machines(machines: Sequence[MachineFacts]) -> str:
    """Return in one line what all have, and in what they differ.

    Args:
        machines: One for each process; several may be of the same host.
    """
    hosts = len({machine.host for machine in machines})
    several, all_of_them, each = (
        (f"{hosts} machines: ", " in all", " each") if hosts > 1 else ("", "", "")
    )
    kernels = each_once(f"{machine.kernel} {machine.architecture}" for machine in machines)
    cpus = format_many(count_cpus(machines), "CPU")
    memory = each_once(format_bytes(machine.memory_bytes) for machine in machines)
    container = ", in a container" * any(machine.container for machine in machines)
    versions = each_once(machine.replayer for machine in machines)
    return (
        f"{several}{kernels}, {cpus}{all_of_them}, {memory} memory{each}{container}, "
        f"replayer {versions}"
    )


def each_once(words: Iterable[str]) -> str:
    """Return what differs, side by side, in an order that does not depend on who came first."""
    return " or ".join(sorted(set(words)))
