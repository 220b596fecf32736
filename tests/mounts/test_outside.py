"""Nothing outside of a run's folder changes, whatever is planted in it or asked for."""

import shutil
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.mounts.fleet import long
from tests.mounts.machine import CannotError, bound, covered, need_root, unmount
from tests.mounts.sentinel import BOTH, Guarded, meanwhile

pytestmark = pytest.mark.mounts


def swap(folder: Path, sentinel: Path, stop: threading.Event) -> None:
    """Change a folder for a link to a sentinel and back, as fast as it goes."""
    aside, decoy = folder.with_name("aside"), folder.with_name("decoy")
    while not stop.is_set():
        with suppress(OSError):
            decoy.symlink_to(sentinel)
        with suppress(OSError):
            folder.rename(aside)
            decoy.rename(folder)
        time.sleep(0.0005)
        with suppress(OSError):
            if folder.is_symlink():
                folder.unlink()
            aside.rename(folder)


@long
@BOTH
def test_a_folder_that_is_changed_for_a_link_while_the_run_goes_on_leads_nowhere(
    guarded: Guarded, confinement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    scene, stop = guarded.scene, threading.Event()
    scene.begin("churn.yaml", "-t", "3s")
    scene.wait_until_measuring()
    work = scene.folder / "work"
    with meanwhile(threading.Thread(target=swap, args=(work, guarded.sentinel, stop)), stop):
        scene.wait(lambda: "left" in scene.said, "it runs")
        time.sleep(1.5)
    scene.happens()
    ending = scene.end()
    assert ending.ops > 100
    guarded.check()
    with suppress(FileNotFoundError):
        shutil.rmtree(scene.folder) if list(scene.mount.glob("replayer-2*")) else None
    guarded.check()


@BOTH
def test_a_folder_that_is_changed_for_a_link_while_it_is_removed_leads_nowhere(
    guarded: Guarded, confinement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    scene, stop = guarded.scene, threading.Event()
    scene.begin("churn.yaml", "-t", "5s", "--set", "files.files=3000")
    scene.wait_until_measuring()
    files = scene.folder / "files"
    with meanwhile(threading.Thread(target=swap, args=(files, guarded.sentinel, stop)), stop):
        assert scene.process is not None
        scene.process.wait(60)
    guarded.check()
    if list(scene.mount.glob("replayer-2*")):
        assert scene.shell.run("clean", scene.mount).code == 0
    guarded.check()


@BOTH
def test_links_that_are_planted_are_removed_and_not_followed(
    guarded: Guarded, confinement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    scene = guarded.scene
    scene.begin("churn.yaml", "-t", "2s")
    scene.wait_until_measuring()
    work = scene.folder / "work"
    for number, target in enumerate(
        (guarded.sentinel, guarded.sentinel / "secret", Path("../../../sentinel/inner"), Path("/"))
    ):
        (work / f"planted-{number}").symlink_to(target)
    with suppress(OSError):
        (work / "secret").unlink()
    with suppress(OSError):
        (work / "secret").symlink_to(guarded.sentinel / "secret")
    scene.happens()
    ending = scene.end()
    assert ending.code in {0, 4}, ending.said
    assert list(scene.mount.glob("replayer-2*")) == []
    guarded.check()


def test_a_hard_link_from_outside_loses_its_name_here_and_nothing_else(guarded: Guarded) -> None:
    scene, secret = guarded.scene, guarded.sentinel / "secret"
    scene.begin("churn.yaml", "-t", "5s")
    scene.wait_until_measuring()
    (scene.folder / "work" / "hard").hardlink_to(secret)
    scene.happens()
    scene.end()
    assert list(scene.mount.glob("replayer-2*")) == []
    assert secret.read_text() == "this is secret\n" * 50
    assert secret.stat().st_nlink == 1
    assert str(secret.stat().st_mtime_ns) in guarded.before["secret"]


def test_a_kept_folder_with_a_hard_link_in_it_is_refused(guarded: Guarded) -> None:
    scene = guarded.scene
    kept = scene.shell.run("run", "look.yaml", "--target", scene.mount, "--keep")
    assert kept.went_well, kept.err
    victim = next(path for path in (scene.folder / "files").rglob("*") if path.is_file())
    outside = guarded.sentinel.parent / "outside"
    outside.hardlink_to(victim)
    refused = scene.shell.run("run", "look.yaml", "--reuse", scene.folder)
    assert refused.code == 2
    assert "hard links" in refused.err
    scene.clean()
    assert outside.stat().st_size == 1024


def test_a_mount_that_is_put_into_the_folder_is_neither_emptied_nor_taken_away(
    guarded: Guarded, stack: ExitStack
) -> None:
    try:
        need_root()
        scene = guarded.scene
        scene.begin("look.yaml", "-t", "5s")
        scene.wait_until_measuring()
        planted = bound(stack, guarded.sentinel, scene.folder / "files" / "planted")
    except CannotError as error:
        pytest.skip(str(error))
    scene.happens()
    ending = scene.end()
    assert ending.code in {3, 4}, ending.said
    assert "left behind" in ending.said
    assert (planted / "secret").exists()
    guarded.check()
    again = scene.shell.run("clean", scene.mount)
    assert again.code == 3
    guarded.check()
    unmount(planted)
    scene.clean()
    guarded.check()


def test_what_guarded_users_name_behind_a_mount_that_is_put_there_stays_as_it_is(
    guarded: Guarded, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", "guarded")
    scene = guarded.scene
    scene.begin("churn.yaml", "-t", "3s")
    scene.wait_until_measuring()
    try:
        need_root()
        work = covered(stack, scene.folder / "work", guarded.sentinel)
    except CannotError as error:
        pytest.skip(str(error))
    scene.happens()
    ending = scene.end()
    assert ending.ops > 100
    assert "left behind" in ending.said
    guarded.check()
    unmount(work)
    scene.clean()
    guarded.check()


@pytest.mark.parametrize("place", ["files", "files/*"])
def test_a_kept_folder_with_a_mount_in_it_is_refused(
    guarded: Guarded, stack: ExitStack, place: str
) -> None:
    scene = guarded.scene
    kept = scene.shell.run("run", "look.yaml", "--target", scene.mount, "--keep")
    assert kept.went_well, kept.err
    planted = next(scene.folder.glob(place))
    try:
        need_root()
        covered(stack, planted, planted)
    except CannotError as error:
        pytest.skip(str(error))
    refused = scene.shell.run("run", "look.yaml", "--reuse", scene.folder)
    assert refused.code == 2
    assert f"{planted.relative_to(scene.folder)}: is a mount point" in refused.err
    unmount(planted)
    scene.clean()
