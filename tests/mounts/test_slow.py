"""A mount that answers, but slowly: what the doctor says of it, and what it leaves there."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, make_shell
from tests.mounts.fleet import long
from tests.mounts.machine import CannotError
from tests.mounts.passing import Passing, passing

pytestmark = pytest.mark.mounts

OPENS = {"open": {"delay_s": 1}, "create": {"delay_s": 1}}
QUARTER_MB_PER_S = {"read": {"delay_s": 0.016}, "write": {"delay_s": 0.016}}  # calls of 4 KiB


@pytest.fixture
def slow(stack: ExitStack, home: Path) -> Iterator[Passing]:
    try:
        place = passing(stack, home / "place")
    except CannotError as error:
        pytest.skip(str(error))
    yield place
    place.suffer()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return make_shell(tmp_path)


def test_the_doctor_times_a_mount_that_takes_a_second_for_each_open(
    slow: Passing, shell: Shell
) -> None:
    slow.suffer(**OPENS, **QUARTER_MB_PER_S)
    began = time.monotonic()
    done = shell.run("doctor", slow.mount)
    assert time.monotonic() - began < 60
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "slow answered late: open of a file 1.0" in said
    assert "create 1.0" in said
    assert "did not answer" not in done.err
    assert list(slow.mount.iterdir()) == []


@long
def test_the_doctor_says_how_far_it_came_on_a_mount_that_is_too_slow(
    slow: Passing, shell: Shell
) -> None:
    process = shell.start("doctor", slow.mount)
    while not list(slow.mount.glob("replayer-doctor-*/*/*")):
        assert process.poll() is None
        time.sleep(0.001)
    slow.suffer(create={"delay_s": 3})
    out, err = process.communicate(timeout=90)
    said = " ".join(out.split())
    assert process.returncode == 3, err
    assert "probe: no call was timed" in said
    assert "slow answered late: " in said
    assert " of 66 files and folders created in 3" in said
    assert list(slow.mount.iterdir()) == []


@long
def test_the_doctor_names_its_folder_where_that_cannot_be_removed_in_time(
    slow: Passing, shell: Shell
) -> None:
    slow.suffer(unlink={"delay_s": 200})
    done = shell.run("doctor", slow.mount)
    (folder,) = slow.mount.iterdir()
    assert done.code == 3, done.err
    assert f"left behind; remove it with: replayer clean {folder}" in done.out


@long
def test_the_doctor_names_the_folder_that_it_may_have_made_on_a_mount_that_hangs(
    slow: Passing, shell: Shell
) -> None:
    slow.suffer(write={"delay_s": 60})
    done = shell.run("doctor", slow.mount)
    (folder,) = slow.mount.iterdir()
    assert done.code == 3, done.err
    assert "did not answer within 20 s" in done.err
    assert f"hint: a folder is left behind; remove it with: replayer clean {folder}" in done.err
