"""What a transaction's slots hold, and which paths are valid (FORMAT.md, Steps and Corners)."""

import errno
import os
from dataclasses import dataclass

PATH_BYTES = 4000
COMPONENT_BYTES = 255
SLOTS = 16


@dataclass(frozen=True)
class Binding:
    """A path below the home of a dataset, with what its entry says of it."""

    home: str
    path: str
    size: int = 0
    mode: int = 0o644
    link: str = ""

    @property
    def within(self) -> str:
        """The path within the dataset, "" where it is not valid."""
        return self.path if is_valid(self) else ""


NOTHING = Binding("", "")


@dataclass
class Slot:
    """A binding and a descriptor, independent of each other."""

    binding: Binding | None = None
    descriptor: int | None = None

    @property
    def entry(self) -> Binding:
        """The binding, or what counts as one in an unbound slot."""
        return self.binding or NOTHING


def path_of(slot: Slot) -> str:
    """Give the path that a call is made with, below the run's folder."""
    binding = slot.binding
    if binding is None or not is_valid(binding):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return f"{binding.home}/{binding.path}" if binding.path else binding.home


def descriptor_of(slot: Slot) -> int:
    """Give the descriptor that a call is made with."""
    if slot.descriptor is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return slot.descriptor


def is_valid(binding: Binding) -> bool:
    """Tell whether a binding is a dataset's directory or a path as an entry may have it."""
    if isinstance(binding, DirectoryBinding):
        return True
    components = binding.path.split("/")
    return len(os.fsencode(binding.path)) <= PATH_BYTES and all(
        component not in {"", ".", ".."} and len(os.fsencode(component)) <= COMPONENT_BYTES
        for component in components
    )


def checked_target(path: str, target: str) -> str:
    """Give a symlink's target back if it stays inside the run's folder, seen from its path."""
    depth = path.count("/")
    inside = 0 < len(os.fsencode(target)) <= PATH_BYTES and not target.startswith("/")
    for component in target.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(component, 1)
        inside = inside and depth >= 0
    if not inside:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return target


@dataclass(frozen=True)
class DirectoryBinding(Binding):
    """A dataset's own directory."""

    path: str = ""
    mode: int = 0o755
