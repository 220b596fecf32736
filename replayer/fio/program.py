"""Finding fio and its version."""

import re
import shutil
import subprocess
from dataclasses import dataclass

from replayer.errors import OutsideError

OLDEST = (3, 28)
"""Of 2021: Debian 12 has 3.33, Ubuntu 22.04 has 3.28, Amazon Linux 2023 has 3.32."""
ANSWER_S = 20.0  # chosen: it only prints its version

_HINT = "install it: apt-get install fio, dnf install fio or apk add fio"
_VERSION = re.compile(r"fio-(\d+)\.(\d+)")


@dataclass(frozen=True)
class Program:
    """An installed fio."""

    path: str
    version: str


def find_fio() -> Program:
    """Return the fio of the search path.

    Raises:
        OutsideError: There is none, it does not run, or it is too old.
    """
    path = shutil.which("fio")
    if path is None:
        raise OutsideError("fio is not in PATH", hint=_HINT)
    text = _ask_version(path)
    found = _VERSION.search(text)
    if found is None:
        raise OutsideError(f"{path}: is not fio: --version prints {text[:60]!r}", hint=_HINT)
    if (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        message = f"{path}: fio must be at least {oldest}, got {found[1]}.{found[2]}"
        raise OutsideError(message, hint=_HINT)
    return Program(path, text.removeprefix("fio-"))


def _ask_version(path: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the program that the user has installed
            [path, "--version"], capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutsideError(f"{path}: cannot be executed: {error}", hint=_HINT) from error
    return done.stdout.strip()
