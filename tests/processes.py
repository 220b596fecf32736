"""The processes below one, and whether one is still there."""

from pathlib import Path

__all__ = ["children_of", "is_there"]


def children_of(pid: int) -> list[int]:
    """Return the children of a process whose main thread forks, in the order they were forked."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_there(pid: int) -> bool:
    """Tell whether a process has not ended; a zombie has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
