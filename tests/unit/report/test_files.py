"""Reports that go to files: what is refused before a run, and what a file that fails costs."""

from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.report.forms import ReportFiles, write_new
from tests.unit.limits import no_room


def test_what_can_be_made_is_not_there_after_a_check(tmp_path: Path) -> None:
    ReportFiles(tmp_path / "page.html", tmp_path / "verdict.xml").check()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_made_is_refused_before_the_run() -> None:
    with pytest.raises(ReplayerError, match=r"x\.html: cannot be made") as refused:
        ReportFiles(html=Path("/proc/x.html")).check()
    assert refused.value.exit_code == 3
    assert "may write to" in refused.value.hint


def test_a_file_that_is_there_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("years of work")
    with pytest.raises(ReplayerError, match="File exists") as refused:
        ReportFiles(junit=tmp_path / "thesis").check()
    assert refused.value.exit_code == 2
    assert (tmp_path / "thesis").read_text() == "years of work"


@pytest.mark.parametrize("folder", ["none", "file"])
def test_a_folder_that_is_not_there_is_the_users_to_make(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReplayerError, match="there is no folder") as refused:
        ReportFiles(html=tmp_path / folder / "page.html").check()
    assert refused.value.exit_code == 2


def test_one_that_cannot_be_written_costs_no_other_one(tmp_path: Path) -> None:
    files = ReportFiles(tmp_path / "none" / "page.html", tmp_path / "verdict.xml")
    (refused,) = files.write(html=lambda: "page", junit=lambda: "verdict")
    assert "there is no folder" in str(refused)
    assert (tmp_path / "verdict.xml").read_text() == "verdict"


def test_one_that_finds_no_room_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    cannot = pytest.raises(ReplayerError, match=r"verdict\.xml: cannot be written")
    with cannot as refused, no_room():
        write_new(tmp_path / "verdict.xml", "verdict")
    assert refused.value.exit_code == 3
    assert "make room" in refused.value.hint
    assert list(tmp_path.iterdir()) == []
