"""Further commands of the program itself."""

from pathlib import Path

import pytest

from replayer.run.own_command import start_ourselves


def test_a_folder_of_the_same_name_is_not_taken_for_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "replayer").mkdir()
    (tmp_path / "replayer/__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert start_ourselves(["--version"]).wait(timeout=60) == 0
