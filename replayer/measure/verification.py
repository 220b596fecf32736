"""The form of what verifying found: how much of what was read was checked, and what it cost.

Frozen values only, part of run.json. The load room fills them; reports print them. Reads that
returned something else than what was written are outcomes of their ops, in every table.
"""

from replayer.measure.facts import Frozen


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


class WrongFile(Frozen):
    """A file that did not hold what was written."""

    target: int
    path: str
    """Below the run's folder."""
    outcome: str
    """The worst of what was found: TORN, SWAPPED, LOST or STALE."""


class LastReading(Frozen):
    """What was written and read back once when the users were gone; it is in no other figure.

    Where files were told apart by their last names (``by_name``), all files of one name are one.
    """

    files: int
    """Files that were read to their end, or that were gone."""
    unclear_files: int
    """Files of which nothing is claimed, and which therefore were not read."""
    failed_files: int
    """Files that could not be opened or read."""
    left_files: int
    """Files that were not read, or not to their end: time was over, or the mount hung."""
    unsynced_files: int
    """Files whose fsync before that failed."""
    verified_bytes: int
    """Bytes of which each was known to be right or wrong."""
    unverified_bytes: int
    """Bytes that were read, and of which nothing is claimed."""
    cached_bytes: int
    """Bytes that were in this machine's page cache: they do not prove what the mount holds."""
    wrong_blocks: WrongBlocks
    wrong_files: tuple[WrongFile, ...]
    """The first 20."""
    took_s: float


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
    by_name: bool = False
    """Whether files were told apart by their last names: those of one name count as one."""
    last: LastReading | None = None
    """Null when nothing was read back at the end."""

    @property
    def checked_bytes(self) -> int:
        """All bytes that were known to be right or wrong."""
        return self.verified_bytes + (0 if self.last is None else self.last.verified_bytes)

    @property
    def wrong_total(self) -> int:
        """All blocks that were wrong."""
        return self.wrong_blocks.total + (0 if self.last is None else self.last.wrong_blocks.total)

    @property
    def ns_per_byte(self) -> float | None:
        """What a verified byte cost; None when none was verified."""
        return self.time_ns / self.verified_bytes if self.verified_bytes else None
