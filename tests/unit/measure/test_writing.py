"""What a full disk does not take waits, whole, and in order."""

import errno
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replayer._native import Recording
from replayer.errors import ReplayerError
from replayer.measure.runfolder import RunFolder

WAITING_BYTES = 16 << 20


@contextmanager
def limited(size_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size: writes are cut short there, as on a full disk."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_lines_that_found_no_room_follow_once_there_is_some(tmp_path: Path) -> None:
    path, file = tmp_path / "events.jsonl", Recording(tmp_path, 0)
    lines = [f"line {number}\n" for number in range(100)]
    for line in lines[:10]:
        file.append_events(line)
    unspoiled = file.error
    assert unspoiled is None
    with limited(123):
        for line in lines[10:50]:
            file.append_events(line)
    assert file.error == ("events.jsonl", errno.EFBIG)
    assert path.stat().st_size == 123
    for line in lines[50:]:
        file.append_events(line)
    assert path.read_text() == "".join(lines)
    assert file.error is not None, "that it was late is not forgotten"


def test_what_waits_is_bounded_and_left_out_in_whole_appends(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "events.jsonl"
    file = Recording(path.parent, 0)
    large = "x" * (WAITING_BYTES // 2) + "\n"
    for _ in range(3):
        file.append_events(large)
    assert file.error == ("histograms.hlog", errno.ENOENT)
    path.parent.mkdir()
    file.finish()
    assert path.read_text() == large


def test_an_event_is_appended_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "a-run")
    folder.append_event("warning", 1.0, {"message": "first"})
    before = (tmp_path / "events.jsonl").read_bytes()
    with limited(len(before) + 10), pytest.raises(ReplayerError, match="cannot be written"):
        folder.append_event("warning", 2.0, {"message": "second"})
    assert (tmp_path / "events.jsonl").read_bytes() == before


def test_an_event_does_not_go_behind_half_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"t_s": 1.0, "ki')
    with pytest.raises(ReplayerError, match="cannot be written"):
        RunFolder(tmp_path, "a-run").append_event("warning", 2.0, {"message": "second"})
    assert (tmp_path / "events.jsonl").read_text() == '{"t_s": 1.0, "ki'
