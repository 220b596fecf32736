"""What the machine can do: programs, packages, root; mounts made and taken away again."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil

__all__ = [
    "CannotError",
    "bound",
    "call",
    "covered",
    "installed",
    "mounted",
    "need_root",
    "needs",
    "processes_with",
    "wait_for",
]

INSTALL_LIMIT_S = 300


class CannotError(Exception):
    """This machine cannot do it; the words say why."""


def call(*words: str | Path, **environment: str) -> str:
    """Run a program to its end and return what it printed.

    Raises:
        CannotError: It failed, with what it said.
    """
    done = subprocess.run(
        [str(word) for word in words],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        timeout=INSTALL_LIMIT_S,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotError(f"{words[0]} failed with {done.returncode}: {said[-1] if said else ''}")
    return done.stdout


def need_root() -> None:
    """Refuse where mounts cannot be made."""
    if os.geteuid() != 0:
        raise CannotError("mounting needs root")


def needs(program: str, package: str) -> None:
    """Have a program, installing its package of Debian if that is possible."""
    if installed(program):
        return
    try:
        call("apt-get", "install", "-y", "-qq", "--no-install-recommends", package)
    except (CannotError, OSError) as error:
        raise CannotError(f"{program} is not here, nor can {package} be installed") from error


def processes_with(*parts: str) -> list[psutil.Process]:
    """List the processes whose command line holds all these parts."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if all(part in line for part in parts):
            found.append(process)
    return found


def installed(program: str) -> bool:
    """Whether a program is here, also where only root looks for it."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None


def mounted(stack: ExitStack, path: Path, *words: str | Path) -> Path:
    """Make a folder and mount something there until the stack is unwound."""
    path.mkdir(parents=True)
    call("mount", *words, path)
    stack.callback(unmount, path)
    return path


def unmount(path: Path) -> None:
    """Take a mount away, lazily if something still uses it."""
    if subprocess.run(["umount", str(path)], check=False, capture_output=True).returncode:
        subprocess.run(["umount", "-l", str(path)], check=False, capture_output=True)


def bound(stack: ExitStack, source: Path, path: Path) -> Path:
    """Show a folder at another place too."""
    return mounted(stack, path, "--bind", source)


def covered(stack: ExitStack, path: Path, source: Path) -> Path:
    """Show a folder or a file in the place of another one."""
    call("mount", "--bind", source, path)
    stack.callback(unmount, path)
    return path


def wait_for(is_so: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Wait until something is so.

    Raises:
        CannotError: It has not come to be.
    """
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise CannotError(f"{what}: not so within {seconds:g} s")
        time.sleep(0.02)
