"""Where in people's own files an exception comes from: locustfiles, and what those import."""

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import replayer

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""What folders of installed packages are called, wherever they are."""
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
    if not path.is_file() or not INSTALLED.isdisjoint(path.parts):
        return False
    return not any(path.is_relative_to(each) for each in (OURS, *_libraries()))


@cache
def _libraries() -> tuple[Path, ...]:
    """Return where modules are that no person at hand has written."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(
        Path(place).resolve() for place in (*map(sysconfig.get_path, names), *_locusts_places())
    )


def _locusts_places() -> Iterator[str]:
    """Yield where Locust is, which is perhaps no usual place (pip's --target, PYTHONPATH)."""
    found = find_spec("locust")
    if found is not None and found.origin is not None:
        yield str(Path(found.origin).parent)
    with suppress(PackageNotFoundError):
        yield str(distribution("locust").locate_file(""))  # with all that it needs
