"""Starting, stopping, breaking off: always in bounded time, with nothing lost."""

import contextlib
import fcntl
import json
import os
import select
import time
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Engine, Sandbox
from tests.unit.engine.drafts import Drafts, Make, Until

FOREVER = {"duration_ns": None, "transactions": None}
MINUTE = {"const": 60_000_000_000}
FOREVER_NS = 2**62


def outcomes(engine: Engine, op: str) -> dict[str, int]:
    return {row.outcome: row.histogram.count for row in engine.totals() if row.op == op}


def opened(path: Path) -> int:
    """How many descriptors of this process are of a file."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # one that is closed meanwhile
            found += descriptor.readlink() == path
    return found


def lock_steps(drafts: Drafts) -> list[dict[str, Any]]:
    return [
        drafts.name(0, "lock"),
        drafts.open_new(0),
        drafts.call("flock", file=0, kind="exclusive", wait=True),
    ]


def test_users_use_up_their_transactions_and_wait(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    stop = {"duration_ns": None, "transactions": 7}
    engine = make(drafts.plan([drafts.name(0, "x")], stop=stop), sandbox)
    for user in range(5):
        engine.start_user(user)
    for turn in range(2):
        engine.begin_segment(0, turn, 0)
        until(lambda: engine.busy_users() == 0)
        assert engine.end_segment(0) == []
        assert outcomes(engine, "transaction") == {"ok": 35}
        assert engine.running_users() == 5
    assert {row.round for row in engine.totals() if row.op == "transaction"} == {0, 1}


def test_time_after_the_last_transaction_is_not_measured(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until, tmp_path: Path
) -> None:
    (tmp_path / "record").mkdir()
    stop = {"duration_ns": None, "transactions": 7}
    plan = drafts.plan([drafts.name(0, "x")], stop=stop)
    engine = make(plan, sandbox, record=str(tmp_path / "record"))
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    until(lambda: engine.busy_users() == 0)
    time.sleep(0.5)
    engine.end_segment(0)
    engine.close()
    lines = (tmp_path / "record/events.jsonl").read_text().splitlines()
    phases = {event["phase"]: event["t_s"] for event in map(json.loads, lines) if "phase" in event}
    assert 0 <= phases["idle"] - phases["measured"] < 0.4


def test_calls_of_a_long_transaction_count_in_the_second_in_which_they_end(
    drafts: Drafts, sandbox: Sandbox, until: Until
) -> None:
    # 10 ms of computing after each call, in pieces too short to sleep.
    busy = {"do": "think", "time": drafts.const(50_000)}
    turn = [
        drafts.call("stat", path=0),
        {"do": "repeat", "times": drafts.const(200), "steps": [busy]},
    ]
    steps = [
        drafts.name(0, "a"),
        {"do": "repeat", "times": drafts.const(1_000_000), "steps": turn},
    ]
    plan = drafts.plan(steps, stop=FOREVER)
    sandbox.lay_out(plan, 1).result()
    engine = Engine(plan, [[sandbox]], interval_ns=100_000_000)
    try:
        engine.start_user(0)
        engine.begin_segment(0, 0, FOREVER_NS)
        found: list[int] = []

        def look() -> int:
            rows = [row for interval in engine.drain_intervals() for row in interval.rows]
            found.extend(row.histogram.count for row in rows if row.op == "stat")
            return len(found)

        until(lambda: look() > 1)
        assert sum(found) < 64  # as many calls are handed over together at most
        engine.measure()
        engine.end_segment(0)
    finally:
        engine.close()
    counts = {row.phase: row.histogram.count for row in engine.totals() if row.op == "stat"}
    assert counts["warm-up"] >= sum(found)
    assert counts.get("measured", 0) < 10  # what was done in the warm-up is no part of it


def test_a_second_segment_needs_the_first_to_end(
    drafts: Drafts, make: Make, sandbox: Sandbox
) -> None:
    engine = make(drafts.plan([]), sandbox)
    engine.begin_segment(0, 0, 0)
    with pytest.raises(RuntimeError, match="segment is open"):
        engine.begin_segment(0, 1, 0)
    with pytest.raises(ValueError, match="target must be below 1, got 3"):
        make(drafts.plan([]), sandbox).begin_segment(3, 0, 0)


def test_a_stopped_user_finishes_its_transaction(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    steps = [drafts.name(0, "x"), {"do": "think", "time": {"const": 100_000_000}}]
    engine = make(drafts.plan(steps, stop=FOREVER), sandbox)
    engine.begin_segment(0, 0, 0)
    engine.start_user(3)
    time.sleep(0.03)
    engine.stop_user(3)
    until(lambda: engine.running_users() == 0)
    assert engine.drain_finished() == [3]
    assert engine.end_segment(0) == []
    assert outcomes(engine, "transaction") == {"ok": 1}
    engine.stop_user(77)


def test_thinking_between_transactions_is_interrupted(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    plan = drafts.plan([], pace={"kind": "closed", "think": MINUTE}, stop=FOREVER)
    engine = make(plan, sandbox)
    engine.begin_segment(0, 0, 0)
    for user in range(3):
        engine.start_user(user)
    time.sleep(0.02)
    engine.stop_user(0)
    until(lambda: engine.running_users() == 2)
    begun = time.monotonic()
    assert engine.end_segment(30_000_000_000) == []
    assert time.monotonic() - begun < 15  # of the 30 s that they have, and the 60 s that they think
    assert outcomes(engine, "transaction") == {}


def test_a_cancelled_user_leaves_a_lock_it_waits_for(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    Path(sandbox.path, "files").mkdir()
    engine = make(drafts.plan(lock_steps(drafts), stop=FOREVER), sandbox)
    with Path(sandbox.path, "files/lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        engine.begin_segment(0, 0, 0)
        engine.start_user(0)
        until(lambda: opened(Path(sandbox.path, "files/lock")) == 1 + 1)
        time.sleep(0.05)  # from there it is on its way to the lock
        engine.cancel_user(0)
        until(lambda: engine.running_users() == 0)
    assert engine.end_segment(0) == []
    assert outcomes(engine, "transaction") == {"cancelled": 1}
    assert outcomes(engine, "flock") == {"cancelled": 1}
    assert outcomes(engine, "close") == {"ok": 1}


def test_a_segment_ends_although_users_wait_for_locks(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    Path(sandbox.path, "files").mkdir()
    stop = {"duration_ns": None, "transactions": 1}
    engine = make(drafts.plan(lock_steps(drafts), stop=stop), sandbox)
    for user in range(4):
        engine.start_user(user)
    with Path(sandbox.path, "files/lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        engine.begin_segment(0, 0, 0)
        until(lambda: opened(Path(sandbox.path, "files/lock")) == 1 + 4)
        assert engine.end_segment(5_000_000_000) == [], "nobody was given up on"
    assert outcomes(engine, "transaction") == {"cancelled": 4}
    engine.begin_segment(0, 1, 0)
    until(lambda: engine.busy_users() == 0)
    assert engine.end_segment(0) == []
    assert outcomes(engine, "transaction")["ok"] == 4


def test_everybody_is_interrupted_at_once(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    Path(sandbox.path, "files").mkdir()
    steps = [drafts.name(0, "x"), drafts.open_new(0), {"do": "think", "time": MINUTE}]
    engine = make(drafts.plan(steps, stop=FOREVER), sandbox)
    engine.begin_segment(0, 0, 0)
    for user in range(20):
        engine.start_user(user)
    until(lambda: opened(Path(sandbox.path, "files/x")) == 20)
    engine.interrupt()
    until(lambda: engine.running_users() == 0)
    assert engine.end_segment(0) == []
    assert outcomes(engine, "transaction") == {"cancelled": 20}


def test_a_thousand_users_start_and_stop(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    steps = [drafts.name(0, "dir-", {"user": True}), drafts.call("mkdir", path=0, mode=0o755)]
    Path(sandbox.path, "files").mkdir()
    engine = make(drafts.plan(steps, users=1000), sandbox)
    for user in range(1000):
        engine.start_user(user)
    assert engine.running_users() == 1000
    engine.begin_segment(0, 0, 0)
    until(lambda: engine.busy_users() == 0)
    assert engine.end_segment(0) == []
    assert len(list(Path(sandbox.path, "files").iterdir())) == 1000
    for user in range(1000):
        engine.stop_user(user)
    until(lambda: engine.running_users() == 0)
    assert sorted(engine.drain_finished()) == list(range(1000))
    assert engine.close() == []


def test_a_user_runs_once(drafts: Drafts, make: Make, sandbox: Sandbox, until: Until) -> None:
    engine = make(drafts.plan([]), sandbox)
    engine.start_user(0)
    with pytest.raises(RuntimeError, match="user 0 is already running"):
        engine.start_user(0)
    engine.stop_user(0)
    until(lambda: engine.running_users() == 0)
    engine.start_user(0)
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.start_user(1)
    assert engine.close() == []


def test_stalls_are_told_while_they_last(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until, tmp_path: Path
) -> None:
    Path(sandbox.path, "files").mkdir()
    record = tmp_path / "record"
    record.mkdir()
    plan = drafts.plan(lock_steps(drafts))
    engine = make(plan, sandbox, record=str(record), stuck_after_ns=20_000_000)
    with Path(sandbox.path, "files/lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        engine.begin_segment(0, 0, 0)
        engine.start_user(5)
        until(engine.stuck)
        (stuck,) = engine.stuck()
        assert (stuck.user, stuck.op, stuck.path) == (5, "flock", "files/lock")
        assert stuck.age_ns > 20_000_000
        time.sleep(0.05)
    until(lambda: engine.busy_users() == 0)
    time.sleep(0.05)
    engine.close()
    events = (record / "events.jsonl").read_text()
    assert events.count('"stall"') == 1
    assert events.count('"stall_over"') == 1


def test_the_doorbell_tells_of_transactions_and_ends(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    steps = [drafts.name(0, "missing"), drafts.call("stat", path=0)]
    engine = make(drafts.plan(steps), sandbox)
    engine.watch_transactions(watched=True)
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    assert select.select([engine.doorbell], [], [], 5)[0]
    os.read(engine.doorbell, 8)
    until(lambda: engine.busy_users() == 0)
    (transaction,), dropped = engine.drain_transactions()
    assert (transaction.user, transaction.name, dropped) == (0, "work", 0)
    assert transaction.error == "stat ENOENT files/missing"
    engine.drain_finished()
    engine.stop_user(0)
    assert select.select([engine.doorbell], [], [], 5)[0]
    until(lambda: engine.drain_finished() == [0])


def test_rounds_draw_anew_and_targets_draw_alike(
    drafts: Drafts, make: Make, tmp_path: Path, until: Until
) -> None:
    steps = [drafts.name(0, {"hex": 16}), drafts.call("mkdir", path=0, mode=0o755)]
    folders = [Sandbox.create(str(tmp_path), name, "{}") for name in ("one", "two")]
    engine = make(drafts.plan(steps), *folders)
    engine.start_user(0)
    names = {}
    for target, folder in enumerate(folders):
        files = Path(folder.path, "files")
        files.mkdir()
        for turn in range(2):
            engine.begin_segment(target, turn, 0)
            until(lambda: engine.busy_users() == 0)
            engine.end_segment(0)
            names[target, turn] = {path.name for path in files.iterdir()}
    assert names[0, 0] == names[1, 0]
    assert len(names[0, 1]) == len(names[1, 1] & names[0, 1]) == 2


@pytest.mark.parametrize(
    "pace",
    [
        {"kind": "every", "period": {"const": 5_000_000}},
        {"kind": "arrivals", "gap": {"const": 5_000_000}},
        {"kind": "closed", "think": {"const": 5_000_000}},
    ],
)
def test_transactions_keep_their_pace(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until, pace: dict[str, object]
) -> None:
    stop = {"duration_ns": None, "transactions": 10}
    engine = make(drafts.plan([], pace=pace, stop=stop), sandbox)
    engine.start_user(0)
    begun = time.monotonic()
    engine.begin_segment(0, 0, 0)
    until(lambda: engine.busy_users() == 0)
    assert 0.044 < time.monotonic() - begun < 10


def test_the_null_target_is_never_touched(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    steps = [drafts.name(0, "x"), drafts.open_new(0), drafts.call("fsync", file=0)]
    engine = make(drafts.plan(steps), sandbox, null=True)
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    until(lambda: engine.busy_users() == 0)
    assert engine.end_segment(0) == []
    assert outcomes(engine, "fsync") == {"ok": 1}
    assert [path.name for path in Path(sandbox.path).iterdir()] == [".replayer-run"]
    assert 0 < engine.overhead_ns(10_000) < 10_000
