"""What a plan asks of a target: room, and whether running it changes what was laid out.

Pure: read off the plan's document. The ground compares it with what the target has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Demand", "changes_files", "demand_of"]

Document = Mapping[str, Any]  # JSON: its shape is plan/FORMAT.md's

WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC of Linux x86-64
CHANGING_OPS = frozenset(
    {
        *("write", "append", "pwrite", "pwrite_random", "copy_file_range", "fallocate"),
        *("ftruncate", "fchmod", "fchown", "futimens", "truncate", "chmod", "chown", "utimens"),
        *("mkdir", "rmdir", "unlink", "rename", "link", "symlink", "setxattr", "removexattr"),
    }
)


@dataclass(frozen=True)
class Demand:
    """Space that laying out takes.

    Attributes:
        bytes: Contents of files, each rounded up to whole blocks.
        inodes: Files, directories and links.
    """

    bytes: int
    inodes: int


def demand_of(plan: Document, block_bytes: int) -> Demand:
    """Return what the plan's datasets take on a file system with such blocks."""
    size_bytes = inodes = 0
    for dataset in plan["datasets"]:
        copies = plan["users"] if dataset["scope"] == "user" else 1
        inodes += copies
        if dataset["laid_out"]:
            sizes = [entry[2] for entry in dataset["entries"]]
            inodes += copies * len(sizes)
            size_bytes += copies * sum(-(-size // block_bytes) * block_bytes for size in sizes)
    return Demand(size_bytes, inodes)


def changes_files(plan: Document) -> bool:
    """Whether running the plan leaves other files behind than were laid out."""
    steps = (step for transaction in plan["transactions"] for step in _calls(transaction["steps"]))
    return any(_changes(step) for step in steps)


def _changes(step: Mapping[str, Any]) -> bool:
    if step["op"] == "open":
        return bool(step["flags"] & WRITE_FLAGS)
    return step["op"] in CHANGING_OPS


def _calls(steps: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for step in steps:
        if step["do"] == "call":
            yield step
        for _, inner in step.get("branches", ()):
            yield from _calls(inner)
        for key in ("steps", "f", "d", "l"):
            yield from _calls(step.get(key, ()))
