"""Which folders ``replayer clean`` takes for a run's."""

import json
import os
import time
from pathlib import Path

import pytest

from replayer import supervisor
from replayer._native import Sandbox
from replayer.cli import clean, main
from replayer.cli.clean import BEGUN, Found, look
from replayer.errors import ReplayerError
from replayer.run import watchdog
from replayer.run.marker import MARKER, marker_note

RUN = "replayer-20261121T000000-abcd"


@pytest.fixture
def of_a_run(tmp_path: Path) -> Path:
    """The folder of a run on the default target of a folder."""
    folder = tmp_path / "replayer-data" / RUN
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    return folder


@pytest.mark.parametrize("up", [0, 1, 2])
def test_a_folder_is_found_by_itself_on_its_target_and_on_the_default_target(
    of_a_run: Path, up: int
) -> None:
    path = (of_a_run, *of_a_run.parents)[up]
    assert look(path) == Found(marked=[of_a_run])


def test_a_folder_begun_is_found_on_the_default_target(of_a_run: Path) -> None:
    begun = of_a_run.with_name("replayer-doctor-0123abcd")
    begun.mkdir()
    assert BEGUN.fullmatch(begun.name)
    assert look(begun.parent) == look(begun.parent.parent)
    assert look(begun.parent) == Found(begun=[begun], marked=[of_a_run])


def test_what_has_neither_marker_nor_a_runs_name_is_looked_into_and_not_taken(
    tmp_path: Path,
) -> None:
    mine = tmp_path / "replayer-mine"
    (mine / "replayer-of-mine").mkdir(parents=True)
    assert look(mine) == look(tmp_path) == Found()


def test_a_renamed_folder_is_known_by_its_marker(of_a_run: Path) -> None:
    renamed = of_a_run.rename(of_a_run.with_name("other"))
    assert look(renamed) == Found(marked=[renamed])


def test_no_link_is_followed(of_a_run: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "replayer-data").symlink_to(of_a_run.parent)
    (home / RUN).symlink_to(of_a_run)
    assert look(home) == Found()


def test_a_link_that_is_named_itself_is_followed(of_a_run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to(of_a_run.parent)
    (tmp_path / "lost").symlink_to("nowhere")
    assert look(tmp_path / "there") == Found(marked=[of_a_run])
    with pytest.raises(ReplayerError, match="is not a folder"):
        look(tmp_path / "lost")


@pytest.mark.parametrize(
    "words", [("", "replayer-data"), ("replayer-data", f"replayer-data/{RUN}"), ("there", "", "")]
)
def test_folders_that_are_found_on_several_paths_are_removed_once(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "replayer-data"
    target.mkdir()
    (tmp_path / "there").symlink_to(target)
    run = Path(Sandbox.create(str(target), RUN.removeprefix("replayer-"), "{}").path)
    begun = run.with_name("replayer-doctor-0123abcd")
    begun.mkdir()
    assert main(["clean", "--force", *(str(tmp_path / word) for word in words)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert sorted(line.partition(":")[0] for line in said) == [f"removed {run}", f"removed {begun}"]
    assert list(target.iterdir()) == []


def test_a_folder_begun_that_is_named_itself_and_found_is_removed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RUN).mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["clean", "--force", str(tmp_path), RUN]) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_that_name_is_no_default_target(tmp_path: Path) -> None:
    (tmp_path / "replayer-data").touch()
    assert look(tmp_path) == Found()


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Folders that cannot be removed, and between them two that can."""
    own = marker_note("own", "0" * 64, "tiny.yaml")
    elsewhere = json.dumps({**json.loads(own), "host": "another"})
    names = ("a", "b-lives", "c", "d-fifo", "e-folder", "f-unmarked")
    found = {name: tmp_path / f"replayer-{name}" for name in names}
    for name, note in (("a", "{}"), ("b-lives", elsewhere), ("c", "{}")):
        Sandbox.create(str(tmp_path), name, note)
    for name in names[3:]:
        found[name].mkdir()
        (found[name] / "mine").touch()
    os.mkfifo(found["d-fifo"] / MARKER)
    (found["e-folder"] / MARKER).mkdir()
    return found


@pytest.mark.parametrize("dry", [True, False])
def test_what_cannot_be_removed_is_named_and_keeps_nothing_else_from_being_removed(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], *, dry: bool
) -> None:
    assert main(["clean", *(["--dry-run"] if dry else []), str(tmp_path)]) == 2
    said = capsys.readouterr()
    verb = "would remove" if dry else "removed"
    assert [line.partition(":")[0] for line in said.out.splitlines()] == [
        f"{verb} {folders['a']}",
        f"{verb} {folders['c']}",
    ]
    assert f"{folders['b-lives']}: its run was started on another machine" in said.err
    for name in ("d-fifo", "e-folder"):
        assert f"{folders[name]}: was not made by a run" in said.err
    assert said.err.count("replayer: ") == 3
    left = set(folders.values()) - (set() if dry else {folders["a"], folders["c"]})
    assert set(tmp_path.iterdir()) == left


def test_of_several_paths_one_that_is_refused_does_not_keep_the_others(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(folders[name]) for name in ("b-lives", "f-unmarked", "a")]
    assert main(["clean", str(tmp_path / "gone"), *words]) == 2
    assert not folders["a"].exists()
    assert f"{tmp_path / 'gone'}: is not a folder" in capsys.readouterr().err
    assert main(["clean", "--force", str(folders["b-lives"])]) == 0
    assert not folders["b-lives"].exists()


def test_a_mount_that_hangs_ends_the_whole(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(path: Path) -> Sandbox:
        opened.append(path)
        time.sleep(5)
        return Sandbox.open(str(path))

    opened: list[Path] = []
    monkeypatch.setattr(watchdog, "ANSWER_S", 0.1)
    monkeypatch.setattr(supervisor, "_hung", [])
    monkeypatch.setattr(clean, "open_folder", hang)
    assert main(["clean", str(tmp_path)]) == 3
    assert opened == [folders["a"]]
