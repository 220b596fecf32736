"""What a path leads to: answered, refused where the system gives no answer, replaced as a whole.

``Path.is_file`` and its like have two failures: a folder on the way is closed, or a name is too
long. Up to Python 3.13 they raise then; from 3.14 on they say "no".
"""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError

NOTHING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a path that leads to nothing."""


class UnaskablePathError(ReplayerError):
    """A path that cannot be asked about as it is written: every question below raises it."""


class ClosedPathError(UnaskablePathError):
    """A path that this user, or this moment, is given no answer about."""

    exit_code = EXIT_ENVIRONMENT


def exists(path: Path) -> bool:
    """Whether a path leads to anything."""
    return _mode(path, os.stat) is not None


def is_file(path: Path) -> bool:
    """Whether a path leads to a regular file."""
    return stat.S_ISREG(_mode(path, os.stat) or 0)


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder."""
    return stat.S_ISDIR(_mode(path, os.stat) or 0)


def is_link(path: Path) -> bool:
    """Whether a path is a symbolic link itself."""
    return stat.S_ISLNK(_mode(path, os.lstat) or 0)


def _mode(path: Path, ask: Callable[[Path], os.stat_result]) -> int | None:
    """Return what kind of file a path leads to, or None: to nothing."""
    try:
        return ask(path).st_mode
    except ValueError:  # a null character: no file has such a name
        return None
    except OSError as error:
        if error.errno in NOTHING:
            return None
        message = f"{path}: {error.strerror or error}"
        if error.errno == errno.ENAMETOOLONG:
            hint = "a name has at most 255 bytes, and a path 4095"
            raise UnaskablePathError(message, hint=hint) from error
        denied = error.errno in {errno.EACCES, errno.EPERM}
        hint = "check the owner and mode of the folders on its way" if denied else ""
        raise ClosedPathError(message, hint=hint) from error


def replace_content(path: Path, content: bytes, mode: int | None = None) -> None:
    """Put a new file in a place: a reader sees the old one or the new one, whole, see fsync(2).

    Its permissions are those of a new file unless a mode is given.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
