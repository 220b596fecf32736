"""Mounts the file system that can be told to fail, and tells it."""

import json
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.mounts.machine import CannotError, call, need_root, unmount, wait_for

__all__ = ["Passing", "passing"]

PYTHON = "/usr/bin/python3"
PROGRAM = Path(__file__).with_name("faulty.py")
PACKAGE = "python3-fusepy"
END_S = 10


@dataclass(frozen=True)
class Passing:
    """The mount and what controls it."""

    mount: Path
    control: Path

    def suffer(self, **faults: Mapping[str, float]) -> None:
        """Have calls fail (``errno``) or last (``delay_s``) from now on, by their names in FUSE."""
        beside = self.control.with_suffix(".new")
        beside.write_text(json.dumps(faults))
        beside.replace(self.control)


def passing(stack: ExitStack, home: Path) -> Passing:
    """Mount it over a folder of the local disk."""
    need_root()
    _need_package()
    (home / "behind").mkdir(parents=True)
    (home / "mount").mkdir()
    passing = Passing(home / "mount", home / "control")
    passing.suffer()
    process = subprocess.Popen(
        [PYTHON, str(PROGRAM), str(home / "behind"), str(passing.mount), str(passing.control)],
        stdin=subprocess.DEVNULL,
    )
    stack.callback(_end, process)
    stack.callback(unmount, passing.mount)
    wait_for(passing.mount.is_mount, "the file system is mounted")
    return passing


def _need_package() -> None:
    try:
        call(PYTHON, "-c", "import fusepy")
    except CannotError:
        call("apt-get", "install", "-y", "-qq", "--no-install-recommends", PACKAGE)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
