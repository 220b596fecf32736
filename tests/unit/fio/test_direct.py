"""A target without O_DIRECT is left out of what needs it, and of nothing else."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from replayer.fio.jobs import load_jobs
from replayer.fio.places import without_direct
from replayer.study.flow import StudyOptions, able
from replayer.study.model import StudyStep

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def ramfs(tmp_path: Path) -> Iterator[Path]:
    """A file system that has no O_DIRECT, on every kernel."""
    mount = tmp_path / "ramfs"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "ramfs", mount], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield mount
    subprocess.run(["umount", mount], check=True)


def test_a_target_is_asked_and_left_as_it_was(tmp_path: Path, ramfs: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    words = (f"disk={disk}", f"memory={ramfs}", f"gone={tmp_path / 'gone'}")
    assert without_direct(load_jobs(["rand-read-4k"]), words) == (f"memory={ramfs}",)
    assert without_direct(load_jobs(["upload"]), words) == ()
    assert [*disk.iterdir(), *ramfs.iterdir()] == []


def test_a_step_is_run_where_it_can_be_and_says_where_not(tmp_path: Path, ramfs: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    step = StudyStep(fio="rand-read-4k")
    both = StudyOptions((f"disk={disk}", f"memory={ramfs}"), quick=True, rounds=None, steps=3)
    terms, says = able(step, both)
    assert (terms.targets, says) == ((f"disk={disk}",), "not on memory: no O_DIRECT")
    alone = StudyOptions((f"memory={ramfs}",), quick=True, rounds=None, steps=3)
    assert able(step, alone) == (alone, None)  # the step itself then says that it is not possible
    assert able(StudyStep(fio="upload"), both) == (both, None)
