"""The form of who made the calls: clients, kinds of users, and what their tasks raised.

Frozen values only, part of run.json. Runs fill them; the verdict judges them and reports print
them.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from replayer.measure.facts import Frozen, MachineFacts
from replayer.measure.health import Health


class ClientShare(Frozen):
    """How much of a figure came from one client."""

    target: int
    transaction: str
    count: int
    """Transactions that ended by themselves in the measured phases."""


class ClientLoss(Frozen):
    """When a client was lost, and why."""

    at_s: float
    """Its last sign of life before, in seconds since the run's begin."""
    why: str
    back_s: float | None = None
    """When it was there again; null: it did not come back."""
    measuring: bool = True
    """Whether something was measured after that, and so by fewer clients."""


class Client(Frozen):
    """One process whose users made calls."""

    number: int
    """From 0; user u is one of client u modulo their number."""
    machine: MachineFacts
    pid: int
    users: int
    """How many users it seats."""
    paths: tuple[tuple[str, ...], ...]
    """Where it reaches each target: one folder for each mount point."""
    status: Literal["working", "finished", "lost"]
    """working: the run has not ended, and shares are not known yet; lost: its last results may be
    missing."""
    losses: tuple[ClientLoss, ...] = ()
    clock_within_ns: Annotated[int, Field(ge=0)]
    """Its times are on the master's clock, give or take so much."""
    shares: tuple[ClientShare, ...]
    health: Health | None
    """Null when it was lost before it could tell."""
    folder: str
    """Its own run folder, on its machine."""


def machines_of(clients: Sequence[Client], alone: MachineFacts) -> tuple[MachineFacts, ...]:
    """Return what each process used whose users made calls; that of a run of one is alone."""
    return tuple(client.machine for client in clients) or (alone,)


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
