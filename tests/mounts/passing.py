"""Mounts the file system that can be told to fail, and tells it."""

import json
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mounts.machine import CannotError, call, need_root, unmount, wait_for

__all__ = ["Passing", "lying", "passing", "queueing"]

PYTHON = "/usr/bin/python3"
PROGRAM = Path(__file__).with_name("faulty.py")
PACKAGE = "python3-fusepy"
END_S = 10


@dataclass(frozen=True)
class Passing:
    """The mount and what controls it."""

    mount: Path
    control: Path

    def suffer(self, **faults: Mapping[str, object]) -> None:
        """Have calls fail (``errno``), last (``delay_s``) or ``queue``, by their names in FUSE."""
        beside = self.control.with_suffix(".new")
        beside.write_text(json.dumps(faults))
        beside.replace(self.control)


def passing(stack: ExitStack, home: Path) -> Passing:
    """Mount it over a folder of the local disk."""
    passing = Passing(home / "mount", home / "control")
    home.mkdir(parents=True, exist_ok=True)
    passing.suffer()
    _mount(stack, home, (PROGRAM, passing.control))
    return passing


def queueing(stack: ExitStack, home: Path, service_s: float, law: str) -> Passing:
    """Mount it with one server for which all wait who sync; skip the test where that cannot be."""
    try:
        place = passing(stack, home)
    except CannotError as error:
        pytest.skip(str(error))
    place.suffer(fsync={"queue": {"servers": 1, "mean_s": service_s, "law": law}})
    return place


def lying(stack: ExitStack, home: Path) -> Path:
    """Mount the file system that lies about data, over a folder of the local disk."""
    return _mount(stack, home, (PROGRAM.with_name("lying.py"),))


def _mount(stack: ExitStack, home: Path, program: tuple[Path, ...]) -> Path:
    need_root()
    _need_package()
    (home / "behind").mkdir(parents=True)
    mount = home / "mount"
    mount.mkdir()
    script, *control = program
    words = [PYTHON, str(script), str(home / "behind"), str(mount), *map(str, control)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    stack.callback(_end, process)
    stack.callback(unmount, mount)
    wait_for(mount.is_mount, "the file system is mounted")
    return mount


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
