"""Which folders ``replayer clean`` takes for a run's."""

from pathlib import Path

import pytest

from replayer.cli import main
from replayer.cli.clean import BEGUN, find_begun, find_folders, follow
from replayer.engine import Sandbox
from replayer.errors import ReplayerError
from replayer.load.marker import MARKER

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
    assert find_folders(path) == [of_a_run]


def test_a_folder_begun_is_found_on_the_default_target(of_a_run: Path) -> None:
    begun = of_a_run.with_name("replayer-doctor-0123abcd")
    begun.mkdir()
    assert BEGUN.fullmatch(begun.name)
    assert find_begun(begun.parent) == find_begun(begun.parent.parent) == [begun]


def test_what_has_neither_marker_nor_a_runs_name_is_looked_into_and_not_taken(
    tmp_path: Path,
) -> None:
    mine = tmp_path / "replayer-mine"
    (mine / "replayer-of-mine").mkdir(parents=True)
    assert find_folders(mine) == find_folders(tmp_path) == find_begun(mine) == []


def test_a_renamed_folder_is_known_by_its_marker(of_a_run: Path) -> None:
    renamed = of_a_run.rename(of_a_run.with_name("other"))
    assert find_folders(renamed) == [renamed]


def test_no_link_is_followed(of_a_run: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "replayer-data").symlink_to(of_a_run.parent)
    (home / RUN).symlink_to(of_a_run)
    assert find_folders(home) == find_begun(home) == []


def test_a_link_that_is_named_itself_is_followed(of_a_run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to(of_a_run.parent)
    (tmp_path / "lost").symlink_to("nowhere")
    assert find_folders(follow(tmp_path / "there")) == [of_a_run]
    assert follow(of_a_run) == of_a_run
    with pytest.raises(ReplayerError, match="is not a folder"):
        find_folders(follow(tmp_path / "lost"))


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
    assert find_folders(tmp_path) == []
