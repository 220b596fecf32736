"""Space, inodes and quotas that end, and mounts that turn read-only, in the middle of things."""

import errno
import os
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.behaviour.shell import make_shell
from tests.mounts.fleet import WANTED, long
from tests.mounts.local import btrfs, on_loop, tmpfs
from tests.mounts.machine import CannotError, call
from tests.mounts.scene import Scene, make_scene
from tests.mounts.zfs import limited_zfs

pytestmark = pytest.mark.mounts

MiB = 1 << 20
ROOM = 160 * MiB
SAVES = "users.think_time=0s"


def small(kind: str, stack: ExitStack, home: Path) -> Path:
    """Return a mount of 48 MiB."""
    try:
        if kind == "tmpfs":
            return tmpfs(stack, home, f"{ROOM}")[0]
        return on_loop(stack, home, ("mkfs.ext4", "-q", "-F"), ROOM)[0]
    except CannotError as error:
        pytest.skip(str(error))


def fill(path: Path) -> None:
    """Write until no space left."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * MiB)


@pytest.fixture(params=["tmpfs", "ext4"])
def scene(request: pytest.FixtureRequest, stack: ExitStack, home: Path) -> Scene:
    return make_scene(home / "shell", small(request.param, stack, home / "place"))


def kind_of(scene: Scene) -> str:
    return call("stat", "-f", "-c", "%T", scene.mount).strip()


def test_space_that_ends_while_laying_out_ends_the_run_and_what_was_made_is_removed(
    scene: Scene,
) -> None:
    scene.begin("look.yaml", "--set", "files.files=32000", "--set", "files.sizes=4KiB")
    scene.wait_until_laying_out()
    with scene.held():
        fill(scene.mount / "filler")
    scene.happens()
    ending = scene.end()
    assert ending.code == 3, ending.said
    assert "no space left" in ending.said
    assert ending.run["status"] == "failed"
    assert sorted(path.name for path in scene.mount.glob("[a-km-z]*")) == ["filler", "foreign"]
    scene.check_foreign()
    scene.tell("no space while laying out", kind_of(scene), ending)


def test_a_probe_of_a_full_mount_says_which_calls_fail(stack: ExitStack, home: Path) -> None:
    # 64 files of a page, and the marker.
    mount = tmpfs(stack, home / "place", f"{65 * os.sysconf('SC_PAGE_SIZE')}")[0]
    done = make_shell(home).run("doctor", "--json", mount)
    assert done.code == 3, done.err
    (found,) = done.document()
    failed = {op["name"]: op for op in found["probe"]["ops"] if op["errors"]}
    assert list(failed) == ["write of 4 KiB"]
    write = failed["write of 4 KiB"]
    assert write["outcomes"] == {"ENOSPC": write["errors"]}
    assert (write["count"], write["p50_ns"]) == (0, None)
    assert list(mount.iterdir()) == []


def test_space_that_ends_in_a_run_is_counted_and_the_run_goes_on(scene: Scene) -> None:
    scene.begin("tiny.yaml", "-t", "3s", "--set", SAVES, "--threshold", "errors == 0")
    scene.wait_until_measuring()
    scene.happens()
    fill(scene.mount / "filler")
    ending = scene.end()
    assert ending.code == 3, ending.said
    assert ending.outcomes == {"ENOSPC"}
    assert ending.run["status"] == "finished"
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell("no space in a run", kind_of(scene), ending)


@long
def test_a_mount_that_turns_read_only_is_counted_and_its_folder_is_left_to_clean(
    scene: Scene,
) -> None:
    scene.begin("tiny.yaml", "-t", "3s")
    scene.wait_until_measuring()
    scene.wait(lambda: remounted(scene.mount, "ro"), "it is read-only")
    scene.happens()
    ending = scene.end()
    assert ending.code == 3, ending.said
    assert "EROFS" in ending.outcomes
    assert "replayer clean" in ending.said
    assert remounted(scene.mount, "rw")
    scene.clean()
    scene.tell("turned read-only", kind_of(scene), ending)


def remounted(path: Path, mode: str) -> bool:
    """Whether it could be remounted: not while a file is open for writing."""
    done = subprocess.run(
        ["mount", "-o", f"remount,{mode}", str(path)], check=False, capture_output=True
    )
    return done.returncode == 0


@pytest.fixture
def few_inodes(stack: ExitStack, home: Path) -> Scene:
    try:
        make = ("mkfs.ext4", "-q", "-F", "-N", "64")
        return make_scene(home / "shell", on_loop(stack, home / "place", make, ROOM)[0])
    except CannotError as error:
        pytest.skip(str(error))


@long
def test_a_target_without_inodes_is_refused_before_anything_is_laid_out(few_inodes: Scene) -> None:
    done = few_inodes.shell.run(
        *("run", "look.yaml", "--target", few_inodes.mount, "--set", "files.files=400")
    )
    assert done.code == 3
    assert "inodes" in done.err
    assert list(few_inodes.mount.glob("replayer-2*")) == []


@long
def test_inodes_that_end_in_a_run_are_counted(few_inodes: Scene) -> None:
    few_inodes.begin("tiny.yaml", "-t", "2s", "--set", SAVES)
    few_inodes.happens()
    ending = few_inodes.end()
    assert ending.outcomes == {"ENOSPC"}, ending.said
    assert list(few_inodes.mount.glob("replayer-2*")) == []
    few_inodes.check_foreign()
    few_inodes.tell("no inodes in a run", "ext4", ending)


def limited_btrfs(stack: ExitStack, home: Path, quota: int) -> Path:
    (mount,) = btrfs(stack, home)
    call("btrfs", "quota", "enable", mount)
    call("btrfs", "qgroup", "limit", f"{quota}", mount)
    return mount


@pytest.mark.parametrize("kind", ["btrfs", "zfs-fuse"])
def test_a_quota_that_ends_is_counted_and_the_folder_is_removed(
    stack: ExitStack, home: Path, kind: str
) -> None:
    if WANTED != "all" and kind not in WANTED:
        pytest.skip("quotas are tried with all mounts only: just mounts all")
    limited = {"btrfs": limited_btrfs, "zfs-fuse": limited_zfs}[kind]
    try:
        mount = limited(stack, home / "place", ROOM)
    except CannotError as error:
        pytest.skip(str(error))
    scene = make_scene(home / "shell", mount)
    write = "transactions.save.1.write.size=1MiB"
    scene.begin("tiny.yaml", "-t", "20s", "--set", SAVES, "--set", write)
    scene.happens()
    ending = scene.end()
    assert ending.outcomes <= {"EDQUOT", "ENOSPC"}, ending.said
    assert "EDQUOT" in ending.outcomes
    scene.check_foreign()
    scene.clean()
    scene.tell("quota ends in a run", kind, ending)


@long
@pytest.mark.parametrize("when", ["full before", "full meanwhile"])
def test_a_full_disk_under_the_run_folder_fails_the_run(
    stack: ExitStack, home: Path, tmp_path: Path, when: str
) -> None:
    records = small("tmpfs", stack, home / "place")
    (tmp_path / "mount").mkdir()
    scene = make_scene(home / "shell", tmp_path / "mount")
    if when == "full before":
        fill(records / "filler")
    scene.begin("tiny.yaml", "-t", "3s", "-o", records / "out")
    if when == "full meanwhile":
        scene.wait((records / "out" / "timeline.csv").exists, "it measures")
        fill(records / "filler")
    scene.happens()
    assert scene.process is not None
    assert scene.process.wait(30) == 3, scene.said
    assert os.strerror(errno.ENOSPC).lower()[:8] in scene.said.lower()
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
