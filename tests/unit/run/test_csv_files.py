"""Where Locust's CSV files go."""

import os
from pathlib import Path

import pytest

from replayer.errors import OutsideError, ReplayerError
from replayer.run.csv_files import csv_prefix


def test_a_folder_holds_the_files_and_anything_else_is_a_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    words = ("there", "there/", "new/", "own", "there/own")
    prefixes = ("there/locust", "there/locust", "new/locust", "own", "there/own")
    assert tuple(map(csv_prefix, words)) == prefixes
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("word", ["file/x", "file/", "nowhere/x", "nowhere/new/"])
def test_a_folder_that_is_missing_is_refused_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("of somebody")
    with pytest.raises(ReplayerError) as caught:
        csv_prefix(word)
    assert caught.value.exit_code == 2
    assert word in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_takes_no_files_is_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(OutsideError, match="not writable") as caught:
        csv_prefix(f"{tmp_path}/own")
    assert caught.value.exit_code == 3
