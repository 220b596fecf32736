"""The processes below one, whether one is still there, and programs that keep CPUs busy."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["children_of", "is_there", "spinners"]


def children_of(pid: int) -> list[int]:
    """Return the children of a process whose main thread forks, in the order they were forked."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_there(pid: int) -> bool:
    """Tell whether a process has not ended; a zombie has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


SPIN = "import ctypes\nctypes.CDLL(None).prctl(15, b'spinner')\nprint(flush=True)\nwhile True: pass"


@contextmanager
def spinners(count: int) -> Iterator[None]:
    """Keep so many CPUs busy with a program that has a name of its own."""
    words = [sys.executable, "-c", SPIN]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()
