"""The form of who measured: the clients of a run on several processes or machines.

Frozen values only, part of run.json. The load room fills them; reports print them.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from replayer.measure.facts import MachineFacts
from replayer.measure.frozen import Frozen
from replayer.measure.health import Health

__all__ = ["Client", "ClientLoss", "ClientShare", "machines_of"]


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
