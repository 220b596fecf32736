"""Users who wait for each other: by signals, and by looking until something is seen."""

import json
import time
from pathlib import Path
from typing import Any

from replayer._native import Engine, Plan, Sandbox
from tests.unit.engine.drafts import Drafts, Make, Until, outcomes

Step = dict[str, Any]

SECOND = 1_000_000_000
EVERY = 2_000_000
LATE = 400_000_000
"""How long after the signal the other user makes the file: two hundred looks."""


def looking(steps: list[Step], limit_ns: int = 20 * SECOND, *, since: int | None = None) -> Step:
    times = {"every": {"const": EVERY}, "limit": {"const": limit_ns}}
    return {"do": "until", "steps": steps, **times, "since": since, "expect": ["ok"]}


def wait_for(signal: int) -> Step:
    return {"do": "await", "signal": signal, "limit": {"const": 20 * SECOND}, "expect": ["ok"]}


def give(signal: int) -> Step:
    return {"do": "signal", "signal": signal}


def pair(drafts: Drafts, first: list[Step], second: list[Step], **changes: object) -> Plan:
    """A plan in which user 0 does one thing and user 1 the other."""
    transactions = [{"name": "first", "steps": first}, {"name": "second", "steps": second}]
    roles: dict[str, Any] = {
        "transactions": transactions,
        "mix": [1, 0],
        "roles": [[1, [1, 0]], [1, [0, 1]]],
    }
    return drafts.plan([], users=2, **{**roles, **changes})


def prepared(plan: Plan, make: Make, sandbox: Sandbox) -> Engine:
    sandbox.lay_out(plan, 1).result()
    return make(plan, sandbox)


def run_users(engine: Engine, users: int, wait: Until) -> None:
    for user in range(users):
        engine.start_user(user)
    engine.begin_segment(0, 0, 0)
    wait(lambda: engine.busy_users() == 0)
    engine.end_segment(0)


def test_a_change_is_timed_from_its_signal_to_the_look_that_saw_it(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    late = {"do": "think", "time": {"const": LATE}}
    changes = [wait_for(0), late, drafts.name(0, "new"), drafts.open_new(0), give(1)]
    looks = [drafts.name(0, "new"), give(0), looking([drafts.call("stat", path=0)], since=1)]
    engine = prepared(pair(drafts, changes, looks), make, sandbox)
    run_users(engine, 2, until)
    assert outcomes(engine, "transaction") == {"ok": 2}
    assert outcomes(engine, "until") == {"ok": 1}
    looked = outcomes(engine, "stat")
    assert looked["ok"] == 1
    assert looked["ENOENT"] >= 1  # it looked before the change
    assert all(row.expected for row in engine.totals())
    (seen,) = [row.histogram for row in engine.totals() if row.op == "until"]
    assert seen.max < LATE  # from the change, not from the first look


def test_a_look_closes_what_it_opened(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    steps = [
        drafts.name(0, "b"),
        drafts.name(1, "a"),
        drafts.call("open", path=1, flags=0, mode=None),
        looking(
            [
                drafts.call("open", path=0, flags=0, mode=None),
                drafts.call("fstat", file=0, expect=("ENOENT",)),
            ],
            limit_ns=10 * EVERY,
        )
        | {"expect": ["UNMET"]},
        drafts.call("fstat", file=1),
        drafts.call("fstat", file=0, expect=("EBADF",)),
    ]
    engine = prepared(drafts.plan(steps), make, sandbox)
    run_users(engine, 1, until)
    assert outcomes(engine, "transaction") == {"ok": 1}
    assert outcomes(engine, "until") == {"UNMET": 1}
    assert outcomes(engine, "open") == outcomes(engine, "close")
    assert 2 <= outcomes(engine, "open")["ok"] <= 12


def test_what_is_never_seen_fails_the_transaction(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    steps = [drafts.name(0, "gone"), looking([drafts.call("stat", path=0)], limit_ns=3 * EVERY)]
    engine = prepared(drafts.plan(steps), make, sandbox)
    run_users(engine, 1, until)
    assert outcomes(engine, "transaction") == {"failed": 1}
    (row,) = [row for row in engine.totals() if row.op == "until"]
    assert (row.outcome, row.expected) == ("UNMET", False)


def test_users_stay_in_step_for_many_transactions(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    stop = {"duration_ns": None, "transactions": 200}
    name = drafts.name(0, "step-", {"seq": True})
    changes = [wait_for(0), name, drafts.open_new(0), give(1)]
    gone = drafts.call("stat", path=0, expect=("ENOENT",))
    looks = [name, gone, give(0), wait_for(1), drafts.call("stat", path=0)]
    engine = prepared(pair(drafts, changes, looks, stop=stop), make, sandbox)
    run_users(engine, 2, until)
    assert outcomes(engine, "transaction") == {"ok": 400}
    assert outcomes(engine, "await") == {"ok": 400}


def test_the_end_of_a_segment_ends_the_waiting(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    engine = prepared(
        drafts.plan([drafts.name(0, "a"), drafts.call("stat", path=0), wait_for(0)]), make, sandbox
    )
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    until(lambda: outcomes(engine, "stat"))
    begin = time.monotonic()
    assert engine.end_segment(20 * SECOND) == []
    assert time.monotonic() - begin < 10  # of the 20 s that transactions have to end
    assert outcomes(engine, "transaction") == {"cancelled": 1}


def test_time_of_verifying_is_not_in_that_of_looking(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    Path(sandbox.path, "files").mkdir()
    size = drafts.const(1 << 20)
    look = [
        drafts.call("open", path=0, flags=0, mode=None),
        drafts.call("read", file=0, size=size, until_end=True, check_size=False),
        drafts.call("close", file=0),
    ]
    steps = [
        drafts.name(0, "big"),
        drafts.call("open", path=0, flags=0o101, mode=0o644),
        drafts.call("write", file=0, total=drafts.const(8 << 20), block=drafts.const(1 << 19)),
        drafts.call("close", file=0),
        looking(look * 8),
    ]
    engine = make(drafts.plan(steps, verify=True), sandbox)
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    until(lambda: engine.busy_users() == 0)
    assert engine.end_segment(0) == []
    took = {
        row.op: row.histogram.mean * row.histogram.count for row in engine.totals() if row.expected
    }
    calls_ns = took["open"] + took["read"] + took["close"]
    verifying_ns = json.loads(engine.verification() or "{}")["ns"]
    assert took["until"] < calls_ns + verifying_ns / 2
