"""The contract of the native module's part for the room on a target: a stub alone."""

from typing import final

__all__ = ["Space"]

@final
class Space:
    """What statfs says of a target."""

    @property
    def bytes_total(self) -> int: ...
    @property
    def bytes_free(self) -> int:
        """Available to this user."""
    @property
    def inodes_total(self) -> int:
        """0 where the file system does not count them."""
    @property
    def inodes_free(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def kind(self) -> int:
        """The f_type magic number."""
