"""Sets of CPUs as the kernel writes them: the list format of cpuset(7), such as ``0-3,8``."""

from collections.abc import Iterable

__all__ = ["PATTERN", "format_cpu_list", "parse_cpu_list"]

PATTERN = r"^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$"
"""Five digits: kernels are built for 8192 CPUs at most (CONFIG_NR_CPUS of x86)."""


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Write numbers of CPUs as ranges, in their order."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def parse_cpu_list(text: str) -> frozenset[int]:
    """Read what ``PATTERN`` matches."""
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)
