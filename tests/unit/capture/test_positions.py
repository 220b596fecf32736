"""Positions at the beginning of a log, from what was open before and after the attaching."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replayer.capture import positions
from replayer.capture.positions import Positions
from replayer.capture.processes import Descriptor, GoneFile, ProcessState

NS_PER_S = 10**9
TRACER = 99


def state(**found: tuple[int, int, str]) -> ProcessState:
    """Return a process with descriptors: name=(number, position, flags)."""
    return ProcessState(
        pid=7,
        process=7,
        command=("x",),
        cwd="/",
        root="/",
        umask="0022",
        descriptors=tuple(
            Descriptor(number=number, link=f"/srv/{name}", position=position, flags=flags)
            for name, (number, position, flags) in found.items()
        ),
        mountinfo="",
    )


def line(ago_s: int, call: str, result: str = "1") -> str:
    stamp = time.clock_gettime_ns(time.CLOCK_REALTIME) - ago_s * NS_PER_S
    when = f"{stamp // NS_PER_S}.{stamp % NS_PER_S:09}"
    return f"7     {when} {call} = {result} <0.000020000>\n"


def found(
    monkeypatch: pytest.MonkeyPatch,
    states: tuple[ProcessState, ProcessState],
    log: Path,
    *lines: str,
) -> dict[str, int]:
    """Return the positions at the beginning of a log, by file."""
    before, after = states
    noted = Positions([before])
    monkeypatch.setattr(positions, "is_running", lambda _: True)
    monkeypatch.setattr(positions, "tracer_of", lambda _: TRACER)
    monkeypatch.setattr(positions, "read_descriptors", lambda _: after.descriptors)
    noted.note(TRACER)
    log.write_text("".join(lines))
    (at_begin,) = noted.at_begin(log)
    return {each.link.removeprefix("/srv/"): each.position for each in at_begin.descriptors}


def test_what_was_recorded_before_the_look_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    states = state(a=(3, 40, "01")), state(a=(3, 53, "01"))
    lines = [
        line(5, 'write(3</srv/a>, "x", 1)'),
        line(5, 'write(4</srv/b>, "xyz", 3)', "3"),
        line(5, 'write(3</srv/a>, "x", 1)', "-1 ENOSPC (No space left on device)"),
        "7 <... futex resumed>) = 0 <0.000020000>\n",
        line(4, 'pread64(3</srv/a>, "abcde", 5, 0)', "5"),
        line(4, 'write(3</srv/a>, "x", 1)'),
        line(4, "lseek(3</srv/a>, 0, SEEK_CUR)", "53"),
        line(-60, 'write(3</srv/a>, "x", 1)'),
    ]
    assert found(monkeypatch, states, tmp_path / "log", *lines) == {"a": 51}


def test_a_look_during_a_call_gives_way_to_another_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def look(_: Path) -> Iterator[Descriptor]:
        position = next(shown)
        if position == 53:
            lines.append(line(0, 'write(3</srv/a>, "x", 1)'))
            time.sleep(0.001)
        yield from state(a=(3, position, "01")).descriptors

    shown = iter([53, 53, 54, 54, 54])
    lines: list[str] = []
    noted = Positions([state(a=(3, 40, "01"))])
    monkeypatch.setattr(positions, "is_running", lambda _: True)
    monkeypatch.setattr(positions, "tracer_of", lambda _: TRACER)
    monkeypatch.setattr(positions, "read_descriptors", look)
    noted.note(TRACER)
    (tmp_path / "log").write_text("".join(lines))
    (at_begin,) = noted.at_begin(tmp_path / "log")
    assert at_begin.descriptors[0].position == 54 - 2


def test_what_moves_a_position_by_more_than_its_result_has_the_older_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    states = (
        state(a=(3, 40, "01"), b=(4, 0, "02001"), c=(5, 7, "0")),
        state(a=(3, 4096, "01"), b=(4, 900, "02001"), c=(5, 8, "0")),
    )
    lines = [
        line(5, "lseek(3</srv/a>, 4096, SEEK_SET)", "4096"),
        line(5, 'write(4</srv/b>, "", 1)'),
    ]
    expected = {"a": 40, "b": 0, "c": 8}
    assert found(monkeypatch, states, tmp_path / "log", *lines) == expected


def test_what_was_opened_and_closed_meanwhile_is_told_by_the_log_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    states = (
        state(a=(3, 10, "0"), gone=(4, 0, "0")),
        state(opened=(5, 3, "0"), unseen=(6, 2, "0")),
    )
    lines = [line(5, "close(3</srv/a>)", "0"), line(5, 'openat(AT_FDCWD, "o")', "5</srv/opened>")]
    expected = {"a": 10, "unseen": 2}
    assert found(monkeypatch, states, tmp_path / "log", *lines) == expected


def test_a_range_that_was_closed_meanwhile_was_open_at_the_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = state(a=(3, 1, "0"), b=(4, 2, "0"), c=(5, 3, "0"), d=(6, 4, "0"), e=(9, 5, "0"))
    states = (before, state(a=(3, 1, "0"), new=(5, 7, "0"), d=(6, 4, "0"), e=(9, 5, "0")))
    lines = [
        line(5, "close_range(4, 5, 0)", "0"),
        line(5, "close_range(6, 4294967295, CLOSE_RANGE_CLOEXEC)", "0"),
    ]
    expected = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    assert found(monkeypatch, states, tmp_path / "log", *lines) == expected


def test_where_nothing_was_attached_what_was_noted_before_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = Positions([state(a=(3, 40, "01"))])
    monkeypatch.setattr(positions, "is_running", lambda task: task != TRACER)
    noted.note(TRACER)
    (at_begin,) = noted.at_begin(tmp_path / "no-log")
    assert at_begin.descriptors[0].position == 40


def test_a_removed_file_has_the_size_from_before_what_was_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def sized(process: ProcessState, size: int) -> ProcessState:
        (one,) = process.descriptors
        removed = one.model_copy(update={"gone": GoneFile(size=size, inode=9)})
        return process.model_copy(update={"descriptors": (removed,)})

    looks = [sized(state(a=(3, 40, "01")), 40), sized(state(a=(3, 50, "01")), 50)]
    for lines, size in (([], 50), ([line(5, 'write(3</srv/a>, "", 10)', "10")], 40)):
        noted = Positions([looks[0]])
        monkeypatch.setattr(positions, "is_running", lambda _: True)
        monkeypatch.setattr(positions, "tracer_of", lambda _: TRACER)
        monkeypatch.setattr(positions, "read_descriptors", lambda _: looks[1].descriptors)
        noted.note(TRACER)
        (tmp_path / "log").write_text("".join(lines))
        (at_begin,) = noted.at_begin(tmp_path / "log")
        assert at_begin.descriptors[0].gone == GoneFile(size=size, inode=9)
