"""Nothing outside of a run's folder changes, whatever is planted in it or asked for."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mounts.fleet import long
from tests.mounts.machine import CannotError, bound, need_root, unmount
from tests.mounts.scene import Scene, make_scene
from tests.mounts.tree import Tree, differences, fingerprint

pytestmark = pytest.mark.mounts

BOTH = pytest.mark.parametrize("confinement", ["as-possible", "guarded"])

CHURN = """\
name: churn
about: Everything that creates, changes and removes, below one folder.
users: {count: 4, think_time: 1ms}
duration: 3s
datasets:
  files: {files: 40, sizes: 1KiB, per_directory: 10, depth: 2}
  work: {directory: true}
mix: {change: 1, save: 1}
transactions:
  change:
    - open: {from: files, pick: uniform, flags: [rdwr, create, trunc], expect: [any]}
    - write: {size: 1KiB, expect: [any]}
    - close: {expect: [any]}
    - chmod: {from: files, pick: uniform, mode: 0o600, expect: [any]}
    - unlink: {from: files, pick: uniform, expect: [any]}
  save:
    - open: {in: work, name: "secret", flags: [create, wronly, trunc], expect: [any]}
    - write: {size: 2KiB, expect: [any]}
    - close: {expect: [any]}
    - mkdir: {in: work, name: "inner-{user}-{seq}", expect: [any]}
    - bind: {in: work, name: "secret-{user}-{seq}", as: moved}
    - rename: {in: work, name: "secret", to: moved, expect: [any]}
    - unlink: {path: moved, expect: [any]}
"""


@dataclass
class Guarded:
    """A scene beside a tree that must not change."""

    scene: Scene
    sentinel: Path
    before: Tree

    def check(self) -> None:
        assert differences(fingerprint(self.sentinel), self.before) == []
        self.scene.check_foreign()


def plant_sentinel(folder: Path) -> Tree:
    """Make a tree with the names that the scenario works on."""
    for name in ("files", "work", "inner"):
        (folder / name).mkdir(parents=True)
    for name in ("secret", "files/secret", "work/secret", "inner/file"):
        (folder / name).write_text(f"this is {name}\n" * 50)
    (folder / "inner" / "file").chmod(0o640)
    (folder / "link").symlink_to("secret")
    return fingerprint(folder)


@pytest.fixture
def guarded(tmp_path: Path, home: Path) -> Iterator[Guarded]:
    (tmp_path / "mount").mkdir()
    scene = make_scene(home / "shell", tmp_path / "mount")
    (scene.shell.home / "churn.yaml").write_text(CHURN)
    sentinel = tmp_path / "sentinel"
    before = plant_sentinel(sentinel)
    yield Guarded(scene, sentinel, before)
    scene.kill()


@contextmanager
def meanwhile(mischief: "threading.Thread", stop: threading.Event) -> Iterator[None]:
    mischief.start()
    try:
        yield
    finally:
        stop.set()
        mischief.join()


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


ESCAPES = [
    "../../../sentinel/secret",
    "{sentinel}/secret",
    "inner/../../../../sentinel/secret",
]


@long
@pytest.mark.parametrize("name", ESCAPES)
def test_a_scenario_that_names_what_is_outside_is_refused_or_fails(
    guarded: Guarded, name: str
) -> None:
    words = name.format(sentinel=guarded.sentinel)
    flags = "[create, wronly, trunc]"
    step = f'transactions.save=[{{open: {{in: work, name: "{words}", flags: {flags}}}}}, close]'
    done = guarded.scene.shell.run(
        "run", "tiny.yaml", "--target", guarded.scene.mount, "--set", step
    )
    assert done.code in {1, 2, 4}, done.err
    guarded.check()


TRACE = """\
100 1700000000.000000 open("{inside}", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>
100 1700000000.000100 write(3, "x", 1) = 1 <0.000010>
100 1700000000.000200 close(3) = 0 <0.000010>
100 1700000000.000300 symlink("{sentinel}", "/srv/site/link") = 0 <0.000010>
100 1700000000.000400 open("link/secret", O_WRONLY|O_TRUNC) = 3 <0.000010>
100 1700000000.000500 write(3, "x", 1) = 1 <0.000010>
100 1700000000.000600 close(3) = 0 <0.000010>
100 1700000000.000700 unlink("/srv/site/../..{sentinel}/secret") = 0 <0.000010>
100 1700000000.000800 rename("/srv/site/link/secret", "/srv/site/../../gone") = 0 <0.000010>
100 1700000000.000900 chmod("link/inner/file", 0777) = 0 <0.000010>
100 1700000000.001000 rmdir("/srv/site/link/inner") = -1 ENOTEMPTY (Directory not empty) <0.000010>
"""


@long
@BOTH
@pytest.mark.parametrize("inside", ["../../sentinel/secret", "file"])
def test_a_trace_that_was_written_to_escape_does_not(
    guarded: Guarded, confinement: str, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    shell = guarded.scene.shell
    (shell.home / "log").write_text(TRACE.format(inside=inside, sentinel=guarded.sentinel))
    made = shell.run("import", "log", "-o", "trace", "--root", "/srv/site", "--format", "strace")
    assert made.code == 0, made.err
    done = shell.run("replay", "trace", "--target", guarded.scene.mount, "--pace", "asap")
    assert done.code in {0, 1, 2, 4}, done.err
    guarded.check()
    left = [path.name for path in guarded.scene.mount.iterdir()]
    assert left == ["foreign"]


FIO = """\
[escape]
ioengine=psync
rw=write
bs=4k
size=64k
{line}
"""


@long
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "line",
    [
        "filename={sentinel}/secret",
        "directory={sentinel}",
        "filename_format=../../../sentinel/work/$jobnum",
        "exec_prerun=rm -rf {sentinel}",
        "write_bw_log={sentinel}/secret",
        "unlink=1",
    ],
)
def test_a_job_of_fio_reaches_nothing_outside(guarded: Guarded, line: str) -> None:
    shell = guarded.scene.shell
    (shell.home / "own.fio").write_text(FIO.format(line=line.format(sentinel=guarded.sentinel)))
    done = shell.run("baseline", "own.fio", "--target", guarded.scene.mount)
    assert done.code in {0, 2, 4}, done.err
    guarded.check()
    assert [path.name for path in guarded.scene.mount.iterdir()] == ["foreign"]
