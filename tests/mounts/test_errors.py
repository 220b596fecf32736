"""Calls that fail or last: EIO on reading, writing and syncing, ESTALE, calls that take seconds."""

import errno
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mounts.fleet import long
from tests.mounts.machine import CannotError
from tests.mounts.passing import Passing, passing
from tests.mounts.scene import Scene, make_scene

pytestmark = pytest.mark.mounts


@dataclass
class Broken:
    scene: Scene
    place: Passing


@pytest.fixture
def broken(stack: ExitStack, home: Path) -> Iterator[Broken]:
    try:
        place = passing(stack, home / "place")
    except CannotError as error:
        pytest.skip(str(error))
    scene = make_scene(home / "shell", place.mount)
    yield Broken(scene, place)
    place.suffer()
    scene.kill()


@pytest.mark.parametrize(
    ("call", "number"),
    [("read", "EIO"), ("write", "EIO"), ("open", "ESTALE"), ("create", "EDQUOT")],
)
def test_calls_that_fail_are_counted_by_errno_and_the_run_goes_on(
    broken: Broken, call: str, number: str
) -> None:
    scene, place = broken.scene, broken.place
    scene.begin("tiny.yaml", "-t", "3s", "--threshold", "errors == 0")
    scene.wait_until_measuring()
    scene.happens()
    place.suffer(**{call: {"errno": getattr(errno, number)}})
    ending = scene.end()
    place.suffer()
    assert ending.outcomes == {number}, ending.said
    assert ending.code == 3, ending.said
    assert ending.run["status"] == "finished"
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell(f"{number} of {call} in a run", "FUSE pass-through", ending)


@pytest.mark.parametrize("call", ["write", "create"])
def test_a_call_that_fails_while_laying_out_ends_the_run_and_names_the_file(
    broken: Broken, call: str
) -> None:
    scene, place = broken.scene, broken.place
    scene.begin("look.yaml", "--set", "files.files=5000")
    scene.wait_until_laying_out()
    scene.happens()
    place.suffer(**{call: {"errno": errno.EIO}})
    ending = scene.end()
    place.suffer()
    assert ending.code == 3, ending.said
    assert "/files/" in ending.said
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell(f"EIO of {call} while laying out", "FUSE pass-through", ending)


def test_a_removal_that_fails_leaves_the_rest_to_clean(broken: Broken) -> None:
    scene, place = broken.scene, broken.place
    scene.begin("look.yaml", "-t", "3s")
    scene.wait_until_measuring()
    scene.happens()
    place.suffer(unlink={"errno": errno.EIO})
    ending = scene.end()
    assert ending.code in {3, 4}, ending.said
    assert "left behind" in ending.said
    place.suffer()
    scene.clean()
    scene.tell("EIO of unlink while removing", "FUSE pass-through", ending)


@long
def test_calls_that_last_are_reported_while_they_do(broken: Broken) -> None:
    scene, place = broken.scene, broken.place
    scene.begin("look.yaml", "-t", "9s")
    scene.wait_until_measuring()
    scene.happens()
    place.suffer(open={"delay_s": 7})
    assert scene.wait_until_told("hangs: user") < 9
    place.suffer()
    ending = scene.end()
    assert ending.code in {0, 4}, ending.said
    assert ending.outcomes == frozenset()
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.tell("open takes 7 s", "FUSE pass-through", ending)


@long
def test_a_folder_that_cannot_be_entered_is_reported_while_that_lasts(
    broken: Broken, tmp_path: Path
) -> None:
    scene, place = broken.scene, broken.place
    other = tmp_path / "other"
    other.mkdir()
    words = ("--rounds", "2", "-t", "18s", "--target", f"other={other}")
    scene.begin("look.yaml", *words)
    scene.wait_until_measuring()
    scene.happens()
    place.suffer(access={"delay_s": 7})  # users ask for it when they enter, and at no other time
    scene.wait_until_told("chdir .")
    place.suffer()
    ending = scene.end()
    assert ending.code in {0, 4}, ending.said
    scene.tell("access takes 7 s", "FUSE pass-through", ending)
