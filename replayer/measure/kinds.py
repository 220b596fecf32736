"""The form of which kinds of users there were, where a locustfile brought some: part of run.json.

Frozen values only. The load room fills them; reports and comparisons tell of them.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from replayer.measure.frozen import Frozen

__all__ = ["UserKind", "with_kinds"]


class UserKind(Frozen):
    """Users of one class, and how many there were at the same time, at most."""

    name: str
    """The class, as the locustfile calls it."""
    does: Literal["scenario", "file calls", "other"]
    """Run the scenario; make file calls of their own, which are measured; or something else (HTTP,
    say), none of which is in the figures."""
    count: Annotated[int, Field(ge=1)]


def with_kinds(users: str, kinds: Sequence[UserKind]) -> str:
    """Return a number of users in words, and which they are where a locustfile brought some."""
    words = _in_words(kinds)
    return f"{users} ({words})" if words else users


def _in_words(kinds: Sequence[UserKind]) -> str:
    """Say how many users run the scenario and what the others are; empty where there are none."""
    if not kinds:
        return ""
    of_scenario = sum(kind.count for kind in kinds if kind.does == "scenario")
    others = ", ".join(
        f"{kind.count:,} {kind.name}{' (in no figure here)' if kind.does == 'other' else ''}"
        for kind in kinds
        if kind.does != "scenario"
    )
    total = sum(kind.count for kind in kinds)
    share = f"{of_scenario:,} of {total:,} run the scenario; " if of_scenario else ""
    return f"{share}of the locustfile: {others}" if others else share.rstrip("; ")
