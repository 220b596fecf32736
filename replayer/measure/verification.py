"""The form of what verifying found: how much of what was read was checked, and what it cost.

Frozen values only, part of run.json. The load room fills them; reports print them. Reads that
returned something else than what was written are outcomes of their ops, in every table.
"""

from replayer.measure.frozen import Frozen

__all__ = ["Verification", "WrongBlocks"]


class WrongBlocks(Frozen):
    """Blocks of 4 KiB, or what was read of them, that were wrong; those of the warm-up too."""

    torn: int
    """Part of a write is there, part of it is not."""
    swapped: int
    """Data of another file, another place or another run."""
    lost: int
    """Nothing where something was written or laid out."""
    stale: int
    """What was there before the last write."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.torn + self.swapped + self.lost + self.stale


class Verification(Frozen):
    """What reads returned, against what was written."""

    reads: int
    """Calls that were looked at."""
    verified_bytes: int
    """Bytes of which each was known to be right or wrong."""
    unverified_bytes: int
    """Bytes that were read, and of which nothing is claimed."""
    mixed_bytes: int
    """Bytes that another user wrote at the same time: neither right nor wrong."""
    time_ns: int
    """Time of all users for stamping and checking, which is in no latency."""
    wrong_blocks: WrongBlocks
    blind: bool
    """Whether a renamed directory or a link made further claims impossible."""

    @property
    def ns_per_byte(self) -> float | None:
        """What a verified byte cost; None when none was verified."""
        return self.time_ns / self.verified_bytes if self.verified_bytes else None
