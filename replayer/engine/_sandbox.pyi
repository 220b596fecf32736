"""The contract of the native module's part for run folders: a stub, no module of its own."""

from typing import final

from replayer.engine._plan import Plan

__all__ = ["Finding", "Sandbox", "Space", "Task"]

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

@final
class Finding:
    """The result of a task: what was done, and what did not fit."""

    @property
    def files(self) -> int: ...
    @property
    def directories(self) -> int: ...
    @property
    def links(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def mismatches(self) -> int:
        """Entries that are missing or differ in type, size, mode or target (verify only)."""
    @property
    def first_mismatch(self) -> str | None:
        """Path and reason, for a person."""
    @property
    def elapsed_ns(self) -> int: ...

@final
class Task:
    """Work under way on native threads: poll it, cancel it, collect its result."""

    @property
    def done_entries(self) -> int: ...
    @property
    def total_entries(self) -> int:
        """0 while not known yet (removal)."""
    @property
    def done_bytes(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        """Calls in the kernel for longer than that, longest first: op, path, age in ns."""
    def cancel(self) -> None:
        """Stop soon, between two entries; ``result`` then raises InterruptedError."""
    def result(self) -> Finding:
        """Wait, then return the finding or raise the first error (OSError with its path)."""

@final
class Sandbox:
    """A run's own folder, PATH/replayer-RUN, seen through one mount point."""

    @staticmethod
    def create(parent: str, run: str, note: str) -> Sandbox:
        """Create the folder (mode 0700) and its marker ``.replayer-run``, holding ``note`` (JSON).

        Raises:
            OSError: Parent missing, not a directory, not writable, folder exists.
            ValueError: ``run`` is not ``[A-Za-z0-9_-]+``.
        """
    @staticmethod
    def open(path: str) -> Sandbox:
        """Open a folder made by ``create``; one without the marker is refused.

        Raises:
            OSError: ENOENT, ENOTDIR, ELOOP (a symlink).
            ValueError: It has no marker, or the marker is not a regular file.
        """
    @property
    def path(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def device(self) -> int:
        """st_dev of the folder."""
    def space(self) -> Space: ...
    def lay_out(self, plan: Plan, threads: int) -> Task:
        """Create every laid-out dataset, and the empty directories of the others.

        Directories first, then files in parallel. Never overwrites: an existing file is the error
        EEXIST. Files are created O_EXCL, filled, given their mode and closed.
        """
    def verify(self, plan: Plan, threads: int) -> Task:
        """Compare what is there with the plan's datasets; extra entries are mismatches too."""
    def warm(self, plan: Plan, threads: int) -> Task:
        """Read every laid-out file once, and stat every entry."""
    def evict(self, plan: Plan, threads: int) -> Task:
        """Sync (fsync) and posix_fadvise(DONTNEED) every laid-out file."""
    def wipe(self, threads: int) -> Task:
        """Remove everything inside but the marker (used between rounds and before a new layout)."""
    def remove(self, threads: int) -> Task:
        """Remove everything inside, then marker and folder; crosses no symlink and no mount."""
