"""What made the latency of a moment: ops, files, errors, calls that hung."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from replayer.analysis.explain import Window, cut_windows, explain
from replayer.analysis.slots import Slots
from replayer.measure.record import RunRecord, load_run
from replayer.report.explaining import lines_of
from tests.unit.runs import RunWriter, make_run

QUICK, SLOW = 10**6, 10**7


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    """Ten seconds of opens and reads; in the fifth, reads take ten times as long and two fail."""
    writer = RunWriter(tmp_path)
    for second in range(10):
        span = (second, second + 1)
        read_ns = SLOW if second == 4 else QUICK
        writer.transaction("view", [QUICK + read_ns] * 20, "0/0", span)
        writer.record("0/0/measured/view/open/ok/expected", [QUICK] * 20, span)
        writer.record("0/0/measured/view/read/ok/expected", [read_ns] * 20, span)
        writer.record("0/0/measured/view/until/ok/expected", [10**9], span)
        if second == 4:
            writer.record("0/0/measured/view/read/EIO/unexpected", [QUICK] * 2, span)
    slow = {"kind": "slow", "target": 0, "transaction": "view", "outcome": "ok"}
    events = [
        {**slow, "t_s": 4.5, "op": "read", "path": "logs/large", "service_ns": 90_000_000},
        {**slow, "t_s": 4.6, "op": "read", "path": "logs/small", "service_ns": 20_000_000},
        {**slow, "t_s": 6.6, "op": "open", "path": "later", "service_ns": 95_000_000},
        {"kind": "stall", "t_s": 4.9, "target": 0, "op": "flock", "path": "a", "age_ns": 2 * 10**8},
        {**slow, "t_s": 4.6, "target": 1, "op": "open", "path": "x", "service_ns": 10**9},
    ]
    return load_run(writer.write(make_run(), events))


def test_a_slow_moment_is_told_with_its_op_its_files_and_its_errors(record: RunRecord) -> None:
    moment, before = explain(record, 0, [(4.0, 5.0), (2.0, 3.0)])
    assert [(share.op, round(share.share, 2), share.count) for share in moment.ops] == [
        ("read", 0.91, 20),
        ("open", 0.09, 20),
    ]
    assert moment.ops[0].usual_ns == pytest.approx((9 * QUICK + SLOW) / 10)
    assert [call.path for call in moment.slowest] == ["logs/large", "logs/small"]
    assert [call.op for call in moment.hung] == ["flock"]
    assert moment.errors == {"read EIO": 2}
    assert (before.slowest, before.hung, before.errors) == ((), (), {})


def test_a_moment_is_told_in_words(record: RunRecord) -> None:
    (moment,) = explain(record, 0, [(4.0, 5.0)])
    slower = "\N{MULTIPLICATION SIGN}5.26 as long as in the whole run"
    assert [*lines_of(moment)] == [
        "hung: flock a 300 ms by then, and went on",
        "errors: 2 read EIO",
        f"read: 90.9 % of the time in calls, 20 calls of 10.0 ms on average, {slower}",
        "open: 9.09 % of the time in calls, 20 calls of 1.00 ms on average",
        "slowest: read logs/large 90.0 ms; read logs/small 20.0 ms",
    ]


def test_what_nfs_mounts_were_asked_in_a_moment_is_told(record: RunRecord) -> None:
    kinds = {
        "GETATTR": {"count": 4, "transmissions": 4, "round_trip_ms": 8, "execute_ms": 10},
        "WRITE": {"count": 2, "transmissions": 3, "round_trip_ms": 60, "execute_ms": 100},
    }
    event = {"kind": "nfs requests", "target": 0, "round": 0, "length_s": 1.0, "requests": kinds}
    events = [{**event, "t_s": second + 1.1} for second in range(3, 6)]
    (moment,) = explain(replace(record, events=tuple(events)), 0, [(4.0, 5.0)])
    (line,) = (line for line in lines_of(moment) if line.startswith("NFS"))
    assert line == "NFS requests: 2 WRITE of 50.0 ms, 1 sent again; 4 GETATTR of 2.50 ms"


def test_a_moment_without_a_call_says_so(record: RunRecord) -> None:
    (moment,) = explain(replace(record, events=()), 0, [(20.0, 30.0)])
    assert [*lines_of(moment)] == ["no call ended"]
    assert [*lines_of(*explain(record, 7, [(4.0, 5.0)]))] == ["no call ended"]


@pytest.mark.parametrize("event", [{"kind": "slow"}, {"kind": "slow", "target": 0, "t_s": "x"}])
def test_events_that_say_nothing_are_passed_over(record: RunRecord, event: dict[str, str]) -> None:
    assert explain(replace(record, events=(event,)), 0, [(4.0, 5.0)])[0].slowest == ()


def test_windows_join_slots_of_a_round_alone() -> None:
    begins = np.arange(100.0)
    slots = Slots(begins, np.ones(100), np.zeros(100, np.int64), (begins >= 50).astype(np.int64))
    windows = cut_windows(slots)
    assert len(windows) == 34
    assert windows[0] == (0.0, 3.0)
    assert windows[16:18] == [(48.0, 50.0), (50.0, 53.0)]
    assert cut_windows(Slots(*(np.zeros(0) for _ in range(4)))) == []  # type: ignore[arg-type]


def test_a_call_that_hangs_is_told_in_each_moment_until_it_comes_back(record: RunRecord) -> None:
    call = {"target": 0, "user": 3, "op": "flock", "path": "a"}
    events = (
        {**call, "kind": "stall", "t_s": 3.0, "age_ns": 10**9},
        {**call, "kind": "stall_over", "t_s": 6.5, "age_ns": 4_500_000_000},
    )
    moments = explain(replace(record, events=events), 0, [(1, 2), (2, 3), (5, 6), (6, 7), (7, 8)])
    told = [[(call.time_ns, call.goes_on) for call in each.hung] for each in moments]
    assert told == [
        [],
        [(1e9, True)],
        [(4e9, True)],
        [(4.5e9, False)],
        [],
    ]


def test_every_second_belongs_to_one_window(record: RunRecord) -> None:
    windows: list[Window] = [(float(at), float(at + 1)) for at in range(10)]
    assert sum(share.count for each in explain(record, 0, windows) for share in each.ops) == 400


def test_waits_for_a_cpu_and_a_client_that_stood_still_are_told(record: RunRecord) -> None:
    wait = {"kind": "cpu_wait", "length_s": 1.0, "worked_s": 2.0}
    events = (
        {**wait, "t_s": 4.2, "waited_s": 0.6},
        {**wait, "t_s": 5.2, "waited_s": 0.4, "client": 1},
        {**wait, "t_s": 9.0, "waited_s": 1.8},
        {"kind": "standstill", "t_s": 3.0, "length_s": 1.5, "client": 0},
        {"kind": "standstill", "t_s": 3.1, "length_s": 1.2, "client": 1},
    )
    moment, later = explain(replace(record, events=events), 0, [(4.0, 5.0), (5.5, 7.0)])
    assert moment.cpu_wait_share == pytest.approx(0.25)
    assert [*lines_of(moment)][:2] == [
        "the client stood still for 0.5 s",
        "in 0.8 s of it users waited for a CPU for 25 % of their time in calls and other work",
    ]
    assert (later.cpu_wait_share, later.cpu_wait_s, later.stood_still_s) == (0, 0, 0)
