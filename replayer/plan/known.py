"""What is known of the slots of plan format 1 at a point of a transaction, before a run."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from replayer.plan.spread import Spread

__all__ = ["KnownSlots"]

V = TypeVar("V")


class KnownSlots:
    """What each slot is bound to, and how its open file stands, as far as a plan tells.

    Attributes:
        identities: What each slot is bound to: equal ones are one entry, or the same entries in
            turn.
        homes: The dataset of what each slot is bound to.
        names_of: How many names each slot may be bound to, by all users in all transactions.
        names: What each slot bound by name is called, so that the same name is known again.
        sizes: Of what each slot is bound to, in bytes.
        places: How many entries the directory bound to a slot has, where known.
        opened: Slots with an open file.
        opened_as: What each open file was bound to when it was opened.
        left: What is left to read of each open file, in bytes.
        listed: Open directories that have been read to their end.
    """

    def __init__(self) -> None:
        self.identities: dict[int, Hashable] = {}
        self.homes: dict[int, int] = {}
        self.names_of: dict[int, float] = {}
        self.names: dict[int, str] = {}
        self.sizes: dict[int, Spread] = {}
        self.places: dict[int, int] = {}
        self.opened: set[int] = set()
        self.opened_as: dict[int, Hashable] = {}
        self.left: dict[int, Spread] = {}
        self.listed: set[int] = set()

    def copy(self, source: int, slot: int) -> None:
        """Bind a slot to what another one is bound to; files stay as they are."""
        _copy(self.identities, source, slot)
        _copy(self.homes, source, slot)
        _copy(self.names_of, source, slot)
        _copy(self.sizes, source, slot)
        _copy(self.names, source, slot)
        _copy(self.places, source, slot)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Know nothing of any slot, as a stage of a pipeline; then what was known before."""
        fresh = vars(KnownSlots())
        own = {name: vars(self)[name] for name in fresh}
        vars(self).update(fresh)
        yield
        vars(self).update(own)


def _copy(known: dict[int, V], source: int, slot: int) -> None:
    if source in known:
        known[slot] = known[source]
    else:
        known.pop(slot, None)
