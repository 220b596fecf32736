"""What lies below a folder, to the byte: compared between mounts, and before and after a run."""

import hashlib
import os
import stat
from pathlib import Path

__all__ = ["Tree", "differences", "fingerprint", "tree_of"]

Tree = dict[str, str]
"""Path below the folder → kind, mode and content in a line."""

HIDDEN = frozenset({".replayer-run"})
MOST_SHOWN = 5


def tree_of(folder: Path) -> Tree:
    """Return every entry below a folder, without following a link."""
    found: Tree = {}
    for parent, directories, files in os.walk(folder):
        for name in (*directories, *files):
            path = Path(parent, name)
            if name not in HIDDEN:
                found[str(path.relative_to(folder))] = _entry(path)
    return found


def fingerprint(folder: Path) -> Tree:
    """Return the same with what only a full look finds: owner, times, links, and attributes."""
    found = tree_of(folder)
    for name in (".", *list(found)):
        path = folder / name
        status = path.lstat()
        attributes = [] if path.is_symlink() else _attributes(path)
        facts = (status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns)
        found[name] = f"{found.get(name, '')} {facts} {status.st_nlink} {attributes}"
    return found


def differences(one: Tree, other: Tree) -> list[str]:
    """Return how two trees differ, the first few differences."""
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    shown = [f"{name}: {one.get(name)} | {other.get(name)}" for name in names[:MOST_SHOWN]]
    rest = len(names) - len(shown)
    return [*shown, f"and {rest} more"] if rest else shown


def _attributes(path: Path) -> list[str]:
    """The names of extended attributes, where the file system has them."""
    try:
        return sorted(os.listxattr(path))
    except OSError:
        return []


def _entry(path: Path) -> str:
    status = path.lstat()
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    if stat.S_ISLNK(status.st_mode):
        return f"link to {_text(path)}"
    if stat.S_ISDIR(status.st_mode):
        return f"directory {mode}"
    if not stat.S_ISREG(status.st_mode):
        return f"special {status.st_mode:o}"
    return f"file {mode} {status.st_size} {_sum(path)}"


def _text(link: Path) -> str:
    """Where a link leads; an error where the file system does not tell (sshfs: what lies above)."""
    try:
        return str(link.readlink())
    except PermissionError as error:
        return str(error.strerror)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
