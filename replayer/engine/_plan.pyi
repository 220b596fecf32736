"""The contract of the native module's part for plans: a stub alone, there is no such module."""

from collections.abc import Sequence
from typing import final

__all__ = ["Plan"]

@final
class Plan:
    """A plan of format 1 (see replayer/plan/FORMAT.md), checked and ready to run."""

    def __new__(cls, document: bytes, traces: Sequence[str] = ()) -> Plan:
        """Parse a JSON document; ValueError: with the place in it, the value and the bound.

        ``traces``: the folders of its traces, in their order; their checksums are compared.
        """
    @property
    def replay_lanes(self) -> int:
        """Threads that one user needs at most for its replays, its own one included (0: none)."""
    @property
    def transactions(self) -> tuple[str, ...]: ...
    @property
    def datasets(self) -> tuple[str, ...]: ...
