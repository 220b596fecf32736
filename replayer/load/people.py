"""Where in people's own files an exception comes from: locustfiles, and what those import."""

import sysconfig
import traceback
from pathlib import Path

import replayer

__all__ = ["place_of", "put"]

LIBRARIES = tuple(
    Path(sysconfig.get_path(name)).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
OURS = Path(replayer.__file__).resolve().parent


def place_of(error: BaseException) -> str | None:
    """Return ``FILE:LINE`` of the innermost line of people's own; None: there is none."""
    if isinstance(error, SyntaxError) and error.filename and _is_of_people(error.filename):
        return f"{error.filename}:{error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_of_people(frame.filename):
            return f"{frame.filename}:{frame.lineno}"
    return None


def put(error: BaseException) -> str:
    """Put an exception as the last line of its traceback does, in one line."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return " ".join(traceback.format_exception_only(error)[-1].split())


def _is_of_people(file: str) -> bool:
    path = Path(file).resolve()
    return path.is_file() and not any(path.is_relative_to(each) for each in (OURS, *LIBRARIES))
