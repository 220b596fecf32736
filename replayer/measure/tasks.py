"""The form of what tasks of a locustfile raised, and of their requests: part of run.json.

Frozen values only. The load room fills them; the verdict judges them.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from replayer.measure.frozen import Frozen

__all__ = ["TaskFailure", "add_task_failures"]


class TaskFailure(Frozen):
    """What tasks raised at one place, or how requests failed: the first of it, and how often."""

    what: Literal["task", "request", "shape"] = "task"
    """A task that raised, a request other than the engine's (of HTTP, say) that failed, or a load
    shape that raised."""
    raised: str
    """The exception as Python prints it, such as ``ValueError: no such page``; of a request after
    its method and name."""
    place: str | None
    """``FILE:LINE`` of the locustfile or of what it imports; null: in neither."""
    count: Annotated[int, Field(ge=1)]


def add_task_failures(every: Iterable[TaskFailure]) -> tuple[TaskFailure, ...]:
    """Return the sum of what several processes saw; what is equal but for its count is one."""
    counts: dict[TaskFailure, int] = {}
    for each in every:
        alike = each.model_copy(update={"count": 1})
        counts[alike] = counts.get(alike, 0) + each.count
    return tuple(each.model_copy(update={"count": count}) for each, count in counts.items())
