"""The form of what tasks of a locustfile raised: part of run.json.

Frozen values only. The load room fills them; the verdict judges them.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from replayer.measure.frozen import Frozen

__all__ = ["TaskFailure", "add_task_failures"]


class TaskFailure(Frozen):
    """What tasks raised at one place: the first of it, and how often."""

    raised: str
    """The exception as Python prints it, such as ``ValueError: no such page``."""
    place: str | None
    """``FILE:LINE`` of the locustfile or of what it imports; null: in neither."""
    count: Annotated[int, Field(ge=1)]


def add_task_failures(every: Iterable[TaskFailure]) -> tuple[TaskFailure, ...]:
    """Return the sum of what several processes saw; what is equal but for its count is one."""
    counts: dict[tuple[str, str | None], int] = {}
    for each in every:
        key = (each.raised, each.place)
        counts[key] = counts.get(key, 0) + each.count
    return tuple(
        TaskFailure(raised=raised, place=place, count=count)
        for (raised, place), count in counts.items()
    )
