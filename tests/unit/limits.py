"""Limits of this process that stand in for a file system that is full."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_room"]


@contextmanager
def no_room() -> Iterator[None]:
    """Have files take no byte: for a few lines, as it holds for what pytest writes, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
