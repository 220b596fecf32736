"""strace's log: counted, bounded on the disk, and cut at a line."""

import os
from pathlib import Path

import pytest

from replayer.capture import log as log_module
from replayer.capture.log import StraceLog

LINE = b"4711  1795235524.343141229 close(3</srv/file>) = 0 <0.000007962>\n"


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = StraceLog(tmp_path / "log", 1000)
    assert (log.size_bytes, log.estimate_events(), log.first_process()) == (0, 0, None)
    assert log.cut() == 0


def test_events_are_estimated_from_the_length_of_lines(tmp_path: Path) -> None:
    log = StraceLog(tmp_path / "log", 10**9)
    for _ in range(3):
        with log.path.open("ab") as file:
            file.write(LINE * 5000)
        log.estimate_events()
    assert log.estimate_events() == pytest.approx(15_000, rel=0.01)


@pytest.mark.parametrize(
    ("text", "process"), [(LINE, 4711), (b"", None), (b"47", None), (b"+++ x\n", None)]
)
def test_the_first_process_is_the_first_word(
    tmp_path: Path, text: bytes, process: int | None
) -> None:
    log = StraceLog(tmp_path / "log", 1000)
    log.path.write_bytes(text)
    assert log.first_process() == process


def test_what_lies_behind_the_bound_takes_no_space_and_is_cut_at_a_line(tmp_path: Path) -> None:
    log = StraceLog(tmp_path / "log", 1_000_000)
    with log.path.open("wb") as file:
        for _ in range(20):
            file.write(LINE * 10_000)
            file.flush()
            log.bound()
        size = file.tell()
        assert os.fstat(file.fileno()).st_blocks * 512 < 1_000_000 + 2 * len(LINE) * 10_000
    assert log.is_full
    assert log.cut() == size - log.size_bytes
    text = log.path.read_bytes()
    assert 1_000_000 - len(LINE) <= len(text) <= 1_000_000
    assert text == LINE * (len(text) // len(LINE))


def test_a_disk_that_fills_up_lowers_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "RESERVE_BYTES", 1 << 60)
    log = StraceLog(tmp_path / "log", 10**9)
    log.path.write_bytes(LINE)
    log.bound()
    assert log.limit_bytes == len(LINE)


def look(log: StraceLog) -> tuple[bool, str | None]:
    """Return whether a log is full, and what troubles it, after another look."""
    log.bound()
    return log.is_full, log.trouble


def test_a_log_that_somebody_removes_is_full_and_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    log, gone = StraceLog(folder / "log", 10**9), "No such file or directory"
    assert look(log) == (False, None)
    log.path.write_bytes(LINE)
    assert look(log) == (False, None)
    assert log.first_process() == 4711
    log.path.unlink()
    assert look(log) == (True, gone)
    assert log.reason == f"can no longer be limited ({gone})"
    log.path.write_bytes(LINE)  # a mount may have been away for a moment
    assert look(log) == (False, None)
    log.path.unlink()
    folder.rmdir()
    assert look(log) == (True, gone)
    assert log.first_process() == 4711


DEATH = b"%d  1795235524.343141229 +++ killed by SIGKILL +++\n"


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        (LINE + DEATH % 4711, True),
        (LINE + DEATH % 4711 + LINE.replace(b"4711", b"4712") * 5000, True),
        (LINE + DEATH % 4712, False),
        (LINE + DEATH % 47, False),
        (LINE, False),
        (b"", False),
    ],
)
def test_the_death_of_the_command_is_told_from_that_of_others(
    tmp_path: Path, *, text: bytes, tells: bool
) -> None:
    log = StraceLog(tmp_path / "log", 10**9)
    log.path.write_bytes(text)
    assert log.tells_of_the_commands_death() is tells
