"""A root that was changed: the mount table names no mount for it."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.mounts.machine import CannotError, bound, mounted, need_root

pytestmark = pytest.mark.mounts

# What it imports is imported before: Python itself is not below the new root.
PROGRAM = """\
import os, sys, json, encodings.idna
from pathlib import Path
from replayer.capture.roots import check_roots
from replayer.doctor.examination import examine
from replayer.run.interruption import Interruption
os.chroot(sys.argv[1])
os.chdir("/")
assert " / / " not in Path("/proc/self/mountinfo").read_text()
found = examine(Path("/data"), Interruption())
(root,) = check_roots([Path("/data")])
print(json.dumps({**found.mount.model_dump(mode="json"), "root": root.file_system}))
"""


@pytest.fixture
def place(stack: ExitStack, home: Path) -> Path:
    """A folder of a memory file system that is no mount point, with /proc in it."""
    try:
        need_root()
        memory = mounted(stack, home / "memory", "-t", "tmpfs", "-o", "noatime", "tmpfs")
        (memory / "below/data").mkdir(parents=True)
        bound(stack, Path("/proc"), memory / "below/proc")
    except CannotError as error:
        pytest.skip(str(error))
    return memory / "below"


def test_the_file_system_of_a_changed_root_is_told_by_statfs(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["filesystem"], found["root"]) == ("tmpfs", "tmpfs")
    assert found["mount_point"] == "/"
    assert "noatime" in found["options"]
    assert found["device"] != "0:0"
