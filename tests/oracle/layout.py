"""Laying out a plan's datasets, and describing the tree that is there. Runs nothing."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracle.content import laid_out

MARKER = ".replayer-run"
UNLISTED_MODE = 0o755


class EntryState(NamedTuple):
    """What stands at a path: type f, d or l; size and hash of files only."""

    type: str
    size: int
    mode: int
    link: str
    sha256: str


def home(dataset: dict[str, Any], user: int) -> str:
    """Name the directory of a dataset, or of this user's copy of it, below the run's folder."""
    directory: str = dataset["directory"]
    return directory if dataset["scope"] == "shared" else f"{directory}/u{user}"


def lay_out(document: dict[str, Any], folder: Path) -> None:
    """Create every dataset of a plan in a run's folder."""
    for number, dataset in enumerate(document["datasets"]):
        copies = range(1 if dataset["scope"] == "shared" else document["users"])
        for user in copies:
            base = folder / home(dataset, user)
            _make_directories(folder, base)
            if dataset["laid_out"]:
                _lay_out_copy(document, number, user, base)


def tree(folder: Path) -> dict[str, EntryState]:
    """Describe everything below a folder, but not the run's marker."""
    found: list[Path] = []
    for directory, directories, files in os.walk(folder, onerror=_refuse):
        found += (Path(directory, name) for name in directories + files)
    states = {str(path.relative_to(folder)): _state(path) for path in sorted(found)}
    states.pop(MARKER, None)
    return states


def _lay_out_copy(document: dict[str, Any], number: int, user: int, base: Path) -> None:
    entries = document["datasets"][number]["entries"]
    for index, (path, type_, _size, mode, link) in enumerate(entries):
        place = base / path
        _make_directories(base, place.parent)
        if type_ == "d":
            _make_directories(base, place)
        elif type_ == "l":
            place.symlink_to(link)
        else:
            with place.open("xb") as file:
                file.write(laid_out(document, number, index, user))
            place.chmod(mode)
    for path, type_, _size, mode, _link in reversed(entries):
        if type_ == "d":
            (base / path).chmod(mode)


def _refuse(error: OSError) -> None:
    raise error


def _make_directories(above: Path, directory: Path) -> None:
    """Create what is missing from a directory's path, with exactly the mode of unlisted ones."""
    missing = [d for d in [directory, *directory.parents] if d.is_relative_to(above)]
    for place in reversed(missing):
        if not place.is_dir():
            place.mkdir()
            place.chmod(UNLISTED_MODE)


def _state(path: Path) -> EntryState:
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        link = os.readlink(path)  # noqa: PTH115 - Path would tidy the target up
        return EntryState("l", 0, mode, link, "")
    if stat.S_ISDIR(status.st_mode):
        return EntryState("d", 0, mode, "", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return EntryState("f", status.st_size, mode, "", digest)
