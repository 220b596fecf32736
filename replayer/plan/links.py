"""Following symbolic links among the entries of a dataset, without a file system."""

import posixpath
from collections.abc import Callable

MAX_LINKS = 40  # MAXSYMLINKS of Linux


def find_through_links(
    path: str, find: Callable[[str], int | None], link_of: Callable[[int], str | None]
) -> int | None:
    """Return the number of the entry that a path leads to, or None.

    Args:
        path: Within the dataset.
        find: Gives the number of the entry with exactly this path.
        link_of: Gives the target of an entry that is a link, None for others.
    """
    for _ in range(MAX_LINKS):
        number = find(path)
        if number is not None:
            return number
        followed = _follow(path, find, link_of)
        if followed is None:
            return None
        path = followed
    return None


def _follow(
    path: str, find: Callable[[str], int | None], link_of: Callable[[int], str | None]
) -> str | None:
    """Replace the first directory of a path that is a link by what it points to."""
    parts = path.split("/")
    for end in range(1, len(parts)):
        number = find("/".join(parts[:end]))
        target = None if number is None else link_of(number)
        if target is not None:
            return posixpath.normpath(posixpath.join(*parts[: end - 1], target, *parts[end:]))
    return None
