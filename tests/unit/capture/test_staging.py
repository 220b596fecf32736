"""The folder of a capture: beside the trace, and never where the program might list it."""

import errno
import tempfile
from pathlib import Path

import pytest

from replayer.capture.staging import make_staging
from replayer.errors import ReplayerError


def test_it_lies_beside_the_trace(tmp_path: Path) -> None:
    staging = make_staging(tmp_path / "trace", [tmp_path / "root"])
    assert staging.folder.parent == tmp_path
    assert staging.folder.name.startswith(".trace.capture-")


def test_of_a_trace_in_a_root_it_lies_beside_the_root(tmp_path: Path) -> None:
    inside = tmp_path / "root/deep"
    inside.mkdir(parents=True)
    staging = make_staging(inside / "trace", [tmp_path / "other", tmp_path / "root"])
    assert staging.folder.parent == tmp_path
    assert list(inside.iterdir()) == []


@pytest.fixture
def unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make = tempfile.mkdtemp

    def refuse(prefix: str, dir: Path) -> str:  # noqa: A002 - as mkdtemp has it
        if dir == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return make(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    return tmp_path


def test_where_nothing_can_be_made_beside_the_root_it_lies_among_temporary_files(
    unwritable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, temporary = unwritable / "root", unwritable / "temporary"
    root.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert make_staging(root / "trace", [root]).folder.parent == temporary
    with pytest.raises(ReplayerError) as error:
        make_staging(root / "trace", [root, temporary])
    assert "outside the roots" in error.value.hint


def test_a_trace_that_is_there_or_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace").symlink_to("nowhere")
    for target in (tmp_path / "trace", tmp_path / "missing/trace"):
        with pytest.raises(ReplayerError) as error:
            make_staging(target, [])
        assert error.value.hint


def test_a_recording_is_what_strace_has_written(tmp_path: Path) -> None:
    staging = make_staging(tmp_path / "trace", [])
    assert not staging.holds_recording
    staging.logs[0].touch()
    assert not staging.holds_recording
    staging.logs[0].write_text("1 exit_group(0) = ?\n")
    assert staging.holds_recording


def test_a_folder_that_takes_no_trace_is_the_environments(unwritable: Path) -> None:
    with pytest.raises(ReplayerError, match="Permission denied") as error:
        make_staging(unwritable / "trace", [unwritable / "root"])
    assert error.value.exit_code == 3
