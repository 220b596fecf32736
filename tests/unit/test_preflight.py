"""What is refused before any command begins: no working directory, names that are not UTF-8."""

import os
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.errors import keep_bug

ALIEN = os.fsdecode(b"p\xff")


def test_a_working_directory_that_is_gone_is_the_environments_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["clean", "."]) == 3
    assert "the working directory is gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("run", "tiny", "--target", f"q={ALIEN}"), ("run", "tiny", "-o", ALIEN), ("doctor", ALIEN)],
)
def test_names_that_are_not_utf_8_are_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "p\\xff: is not UTF-8" in capsys.readouterr().err


def test_so_is_such_a_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ALIEN).mkdir()
    monkeypatch.chdir(tmp_path / ALIEN)
    assert main(["scenarios"]) == 2
    assert "p\\xff: is not UTF-8" in capsys.readouterr().err


def test_a_mistake_of_ours_about_such_a_name_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert "this is a bug" in keep_bug(ValueError(ALIEN))
    (kept,) = tmp_path.iterdir()
    assert b"udcff" in kept.read_bytes()
