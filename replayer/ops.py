"""What each op does: the table of ``replayer/native/ops``, and the groups that are derived from it.

No other place lists ops. A group that is needed twice, or that is more than one condition, stands
here; a condition on one op is asked of the op.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from replayer._native import OPS


@dataclass(frozen=True)
class Op:
    """One op."""

    name: str
    """As in plans, traces and reports."""
    kind: Literal["look", "alter", "attribute", "use", "read", "write", "mark", "end"]
    """What it does to the tree: it looks a name up (``look``), changes what one means (``alter``)
    or its attributes (``attribute``); or it uses an open file (``use``, ``read``, ``write``),
    changes its attributes (``mark``) or ends it (``end``)."""
    contents: Literal["none", "reads", "writes", "copies", "alters"]
    """What it does with the contents of files; ``alters``: without moving bytes."""
    same_as: str
    """The op that does the same to a mount, by whose name they are compared."""
    flags: frozenset[str]
    """Facts that hold, as ``replayer/native/ops`` names and describes them."""


def timed_as(name: str) -> str:
    """Return the op by whose name a replay times an op of a trace."""
    return "close" if name == "close_dup" else name


def names_where(holds: Callable[[Op], bool]) -> frozenset[str]:
    """Return the names of the ops for which a condition holds."""
    return frozenset(op.name for op in BY_NAME.values() if holds(op))


BY_NAME = {row[0]: Op(*row) for row in OPS}

PLAN_OPS = names_where(lambda op: "plan" in op.flags)
"""Steps of plans can have them."""
TRACE_OPS = names_where(lambda op: "trace" in op.flags)
"""Events of traces can have them."""
TIMED_OPS = names_where(lambda op: bool(op.flags & {"plan", "trace"}) and "untimed" not in op.flags)
"""Calls that runs time: thresholds and prices may name them."""
UNTIMED = names_where(lambda op: "untimed" in op.flags)
"""No calls of the recorded program: replays make them between the timed ones."""
SAME_AS = {name: op.same_as for name, op in BY_NAME.items()}
"""The op that does the same to a mount: itself for most."""
PATH_OPS = names_where(
    lambda op: op.kind in {"look", "alter", "attribute"} and not op.flags & {"xattr", "untimed"}
)
"""Ops that fail when a name is not there. Those on xattrs fail when an attribute is not."""
READING = names_where(lambda op: op.contents in {"reads", "copies"})
WRITING = names_where(lambda op: op.contents in {"writes", "copies"})
STORING = names_where(lambda op: op.contents in {"writes", "copies", "alters"})
"""They leave something that must be stored: a flush makes it safe."""
TO_THE_END = names_where(lambda op: "to_end" in op.flags)
"""Steps of scenarios make them again until they return 0."""
FLUSHING = names_where(lambda op: "flushes" in op.flags)
"""Not sync_file_range(2): it writes no metadata, and empties no cache of a device."""
MAKING = names_where(lambda op: "makes" in op.flags)
"""An open may make its file: a bound."""
ALTERING = names_where(lambda op: op.kind in {"alter", "attribute", "mark", "write"})
"""They leave another tree or other contents. So does an open, by its flags."""
