import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.ops import BY_NAME
from replayer.trace.errors import TraceError
from replayer.trace.reading import load_statistics
from replayer.trace.timeline import (
    KINDS,
    NAMES,
    Calls,
    Performance,
    find_performances,
    kind_of,
    load_events,
)

FRONT = Path(__file__).parents[3] / "traces" / "wordpress" / "front-warm"


def test_events_are_those_that_are_counted() -> None:
    events, counted = load_events(FRONT), load_statistics(FRONT)
    names, counts = np.unique(events.op, return_counts=True)
    found = {NAMES[op]: count for op, count in zip(names, counts, strict=True)}
    assert found == {op: each["count"] for op, each in counted["ops"].items()}
    assert (events.result == -2).sum() == counted["errors"]["ENOENT"]
    assert events.recorded.end_ns == counted["span_ns"]


def test_reads_of_open_files_have_their_path() -> None:
    events = load_events(FRONT)
    reads = np.flatnonzero(events.op == NAMES.index("pread"))
    reads = reads if len(reads) else np.flatnonzero(events.op == NAMES.index("read"))
    assert all(events.path_of(int(row)) for row in reads)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        *(("open", "look"), ("stat", "look"), ("read", "read"), ("getdents", "read")),
        *(("append", "write"), ("copy_file_range", "write"), ("fsync", "flush")),
        *(("rename", "alter"), ("chmod", "alter"), ("close", "other")),
    ],
)
def test_calls_are_told_apart_by_what_they_do(op: str, kind: str) -> None:
    assert kind_of(BY_NAME[op]) == kind


def test_calls_are_found_by_path_error_and_op() -> None:
    events = load_events(FRONT)
    rows = events.find("wp-config", None, None)
    assert 0 < len(rows) < len(events.op)
    assert all("wp-config" in events.path_of(int(row)) for row in rows)
    missing = events.find("", 2, "access")
    assert {NAMES[op] for op in events.op[missing]} == {"access"}
    assert set(events.result[missing].tolist()) == {-2}
    assert not len(events.find("", None, "nothing of this name"))


GAPS = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from(["stat", "read", "fsync"]), *[st.integers(0, 9)] * 2
    ),
    min_size=1,
    max_size=30,
)


@given(calls=GAPS, edges=st.lists(st.integers(0, 400), min_size=2, max_size=9).map(sorted))
def test_time_in_calls_is_what_adding_up_each_nanosecond_gives(
    calls: list[tuple[int, str, int, int]], edges: list[int]
) -> None:
    now, columns = {0: 0, 1: 0}, []
    for thread, op, pause, length in calls:
        columns.append((thread, NAMES.index(op), now[thread] + pause, length))
        now[thread] += pause + length
    thread, op, start, length = np.array(columns, np.int64).T
    made = Calls(
        thread.astype(np.uint32),
        op.astype(np.uint8),
        np.zeros_like(start),
        start,
        length,
        np.ones(len(op), bool),
    )
    for number, lane in made.lanes.items():
        spent = np.diff(lane.spent_until(np.array(edges)), axis=0)
        for place, (begin, end) in enumerate(pairwise(edges)):
            expected = dict.fromkeys(KINDS, 0)
            for each, own, at, took in columns:
                if each == number:
                    inside = max(min(at + took, end) - max(at, begin), 0)
                    expected[kind_of(BY_NAME[NAMES[own]])] += inside
            assert spent[place].tolist() == list(expected.values())


def write_log(
    folder: Path, name: str, records: list[tuple[int, int, int]], more: bytes = b""
) -> None:
    content = b"".join(struct.pack("<QQQ", *record) for record in records)
    (folder / name).write_bytes(content + more)


def test_a_replay_is_told_by_user_and_number(tmp_path: Path) -> None:
    write_log(tmp_path, "u1-p0-l0.events", [(0, 500, 600)])
    write_log(tmp_path, "u0-p10-l0.events", [(0, 500, 600), (2, 700, 710)])
    write_log(tmp_path, "u0-p10-l1.events", [(1, 550, 551)], b"cut off")
    (tmp_path / "u0-p2-l0.events").symlink_to(tmp_path / "u1-p0-l0.events")
    (tmp_path / "other").touch()
    found = find_performances(tmp_path)
    assert [(each.user, each.number, len(each.logs)) for each in found] == [(0, 10, 2), (1, 0, 1)]
    events = load_events(FRONT)
    calls = events.replayed(found[0])
    assert calls.is_made.sum() == 3
    first_ns = int(events.recorded.start_ns[0])
    assert (calls.start_ns[:3] - first_ns).tolist() == [0, 50, 200]
    assert calls.duration_ns[:3].tolist() == [100, 1, 10]
    assert calls.end_ns == first_ns + 210
    assert find_performances(tmp_path / "none") == []


def test_a_request_is_replayed_where_it_was_recorded(tmp_path: Path) -> None:
    write_log(tmp_path, "u0-p7-l0.events", [(5000, 30, 40), (5001, 50, 60)])
    events = load_events(FRONT)
    calls = events.replayed(find_performances(tmp_path)[0])
    assert calls.start_ns[5000] == events.recorded.start_ns[5000]
    assert calls.start_ns[5001] - calls.start_ns[5000] == 20


def test_calls_without_a_length_are_under_way_at_the_ends_of_a_window() -> None:
    times = np.array([0, 50, 100])
    ops = np.full(3, NAMES.index("stat"), np.uint8)
    none = np.zeros(3, np.int64)
    made = Calls(none.astype(np.uint32), ops, none, times, none - 1, np.ones(3, bool))
    (lane,) = made.lanes.values()
    assert lane.between(0, 100) == slice(0, 3)
    assert lane.between(10, 60) == slice(1, 2)


def test_a_log_of_another_trace_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path, "u0-p0-l0.events", [(10**6, 0, 1)])
    (performance,) = find_performances(tmp_path)
    with pytest.raises(TraceError, match="it has no event 1000000"):
        load_events(FRONT).replayed(performance)


def test_a_log_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = Performance(0, 0, (tmp_path / "u0-p0-l0.events",))
    with pytest.raises(TraceError, match="cannot be read"):
        load_events(FRONT).replayed(gone)
