"""The fence around fio: a program in it changes nothing outside of its folder, links or not."""

import subprocess
import time
from pathlib import Path

import pytest

from replayer.fio.fence import Fence, fence_around, find_confinement
from replayer.fio.process import FioProcess, Launch
from replayer.fio.program import Program


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder with links to a file and a folder beside it."""
    folder, outside = tmp_path / "inside", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "file").write_text("as it was")
    (folder / "link").symlink_to(outside / "file")
    (folder / "new").symlink_to(outside / "new")
    (folder / "folder").symlink_to(outside)
    return folder


def run_in(fence: Fence, script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=fence.enter,
    )


needs_landlock = pytest.mark.skipif(
    find_confinement() != "fenced", reason="this kernel has no Landlock"
)


@needs_landlock
@pytest.mark.parametrize(
    "script",
    [
        "echo other >link",
        "echo other >new",
        "echo other >folder/file",
        "mkdir folder/made",
        "rm folder/file",
        "mv folder/file moved",
        "echo other >../outside/file",
        "ln ../outside/file hard && echo other >hard",
    ],
)
def test_nothing_outside_is_changed(inside: Path, script: str) -> None:
    with fence_around(inside) as fence:
        done = run_in(fence, script)
    assert done.returncode != 0
    assert [path.name for path in (inside.parent / "outside").iterdir()] == ["file"]
    assert (inside.parent / "outside" / "file").read_text() == "as it was"


def test_everything_inside_is_possible(inside: Path) -> None:
    script = (
        "pwd && mkdir -p a/b && echo x >a/file && mv a/file a/b/ && : >a/b/file && ln a/b/file c "
        "&& rm -r a c link && ln -s c link"
    )
    with fence_around(inside) as fence:
        done = run_in(fence, script)
    assert (done.returncode, done.stdout) == (0, f"{inside}\n"), done.stderr
    assert sorted(path.name for path in inside.iterdir()) == ["folder", "link", "new"]


@needs_landlock
def test_a_device_that_was_named_can_be_written_and_no_other(inside: Path) -> None:
    script = "echo x >/dev/null && ! echo x 2>/dev/null >/dev/zero"
    with fence_around(inside, [Path("/dev/null")]) as fence:
        done = run_in(fence, script)
    assert done.returncode == 0, done.stderr


@needs_landlock
@pytest.mark.parametrize("may_write", [True, False])
def test_a_device_can_be_written_only_where_jobs_may_write(
    inside: Path, tmp_path: Path, *, may_write: bool
) -> None:
    stand_in = tmp_path / "program"
    stand_in.write_text("#!/bin/sh\necho x >/dev/null\n")
    stand_in.chmod(0o700)
    program = Program(str(stand_in), "3.33")
    process = FioProcess(Launch(program, inside / "jobs", inside, may_write, Path("/dev/null")))
    deadline = time.monotonic() + 10
    while (code := process.ended()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (code == 0) == may_write, process.messages


def test_a_folder_that_was_changed_for_a_link_is_refused(inside: Path) -> None:
    with pytest.raises(NotADirectoryError), fence_around(inside / "folder"):
        pass


def test_no_descriptor_stays_open(inside: Path) -> None:
    before = sorted(map(str, Path("/proc/self/fd").iterdir()))
    with fence_around(inside):
        pass
    assert sorted(map(str, Path("/proc/self/fd").iterdir())) == before
