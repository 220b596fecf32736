"""What became of a run's folder that is not where it was made."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from replayer._native import Sandbox
from replayer.run.marker import Loss, find_loss, identify

HERE = Path("/dev/shm")  # noqa: S108 - a file system of its own


def lose(target: Path, happens: Callable[[], object], device: int = 0) -> Loss | None:
    """What is found of a folder on a target to which something happens."""
    folder = Sandbox.create(str(target), "20261121T000000-abcd", "{}")
    made = identify(folder.path)
    happens()
    return find_loss("mount", folder, (made[0] + device, made[1]))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "above" / "target"
    path.mkdir(parents=True)
    return path


def test_a_folder_that_is_where_it_was_is_not_lost(target: Path) -> None:
    assert lose(target, lambda: None) is None


@pytest.mark.parametrize("which", ["target", "above"])
def test_a_target_that_was_renamed_is_no_mount_that_is_gone(target: Path, which: str) -> None:
    moved = target if which == "target" else target.parent
    loss = lose(target, lambda: moved.rename(moved.with_name("other")))
    assert loss is not None
    assert loss.says.startswith("the target mount was renamed or removed: ")
    assert "replayer clean NEW-NAME" in loss.remedy


def test_a_folder_on_a_target_that_is_reached_by_a_link_was_deleted(tmp_path: Path) -> None:
    if not HERE.is_dir() or HERE.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir=HERE) as there:
        link = tmp_path / "link"
        link.symlink_to(there)
        loss = lose(link, lambda: shutil.rmtree(next(Path(there).iterdir())))
    assert loss is not None
    assert "was deleted, renamed or replaced" in loss.says


def test_a_target_on_another_device_was_unmounted(target: Path) -> None:
    loss = lose(target, lambda: shutil.rmtree(target), device=1)
    assert loss is not None
    assert loss.says.startswith("the mount of mount is gone")
