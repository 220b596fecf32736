"""When segments end, and what was due by then: in the engine, whoever leads it and however late."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Engine, Sandbox
from tests.unit.engine.drafts import Drafts, Make

MS = 1_000_000
SECOND = 1000 * MS
FOREVER = {"duration_ns": None, "transactions": None}
ARRIVALS = {"kind": "arrivals", "gap": {"const": 20 * MS}}
PERIODS = {"kind": "every", "period": {"const": 20 * MS}}
CLOSED = {"kind": "closed", "think": {"const": 0}}


def ended(record: Path) -> dict[str, Any]:
    """The event of the one segment's end, and when it began to be measured."""
    events = [json.loads(line) for line in (record / "events.jsonl").read_text().splitlines()]
    (ending,) = [event for event in events if event["kind"] == "ending"]
    measured = next(event for event in events if event.get("phase") == "measured")
    return {**ending, "lasted_s": ending["t_s"] - measured["t_s"]}


def begun(engine: Engine, phase: str = "measured") -> int:
    """How many transactions were recorded in a phase."""
    rows = [row for row in engine.totals() if row.op == "transaction" and row.phase == phase]
    return sum(row.histogram.count for row in rows)


def begin(engine: Engine, users: int, warm_up_ns: int, measured_ns: int) -> None:
    """Start users and a segment."""
    for user in range(users):
        engine.start_user(user)
    engine.begin_segment(0, 0, warm_up_ns, measured_ns)


def end(engine: Engine) -> None:
    """End the segment, with a second of grace, and the engine."""
    engine.end_segment(SECOND)
    engine.close()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    folder = tmp_path / "record"
    folder.mkdir()
    return folder


def thinking(drafts: Drafts, pace: dict[str, Any], users: int, think_ms: int) -> Any:  # noqa: ANN401 - a plan
    steps = [{"do": "think", "time": {"const": think_ms * MS}}]
    return drafts.plan(steps, pace=pace, users=users, stop=FOREVER)


@pytest.mark.parametrize("pace", [ARRIVALS, PERIODS], ids=["open", "paced"])
def test_what_was_due_and_never_began_is_counted(
    drafts: Drafts, make: Make, sandbox: Sandbox, record: Path, pace: dict[str, Any]
) -> None:
    users = 2
    engine = make(thinking(drafts, pace, users, 100), sandbox, record=str(record))
    begin(engine, users, 0, SECOND // 2)
    time.sleep(0.7)
    end(engine)
    due = 25 if pace is ARRIVALS else 25 * users
    found = ended(record)
    assert found["lasted_s"] == pytest.approx(0.5, abs=1e-5)
    assert found["unbegun"] > 0
    assert begun(engine) + found["unbegun"] == pytest.approx(due, abs=users)


def test_a_schedule_that_was_kept_leaves_nothing_undone(
    drafts: Drafts, make: Make, sandbox: Sandbox, record: Path
) -> None:
    engine = make(thinking(drafts, ARRIVALS, 30, 100), sandbox, record=str(record))
    begin(engine, 30, 0, SECOND // 2)
    time.sleep(0.5)
    end(engine)
    assert ended(record)["unbegun"] == 0
    assert begun(engine) == pytest.approx(24, abs=1)


def test_users_begin_nothing_after_the_end_however_late_it_is_noticed(
    drafts: Drafts, make: Make, sandbox: Sandbox, record: Path
) -> None:
    engine = make(thinking(drafts, CLOSED, 2, 10), sandbox, record=str(record))
    begin(engine, 2, 0, SECOND // 5)
    time.sleep(1)
    assert engine.busy_users() == 0
    end(engine)
    assert begun(engine) <= 40
    assert ended(record)["lasted_s"] == pytest.approx(0.2, abs=1e-5)


def test_the_end_counts_from_where_the_warm_up_was_ended(
    drafts: Drafts, make: Make, sandbox: Sandbox, record: Path
) -> None:
    engine = make(thinking(drafts, CLOSED, 1, 10), sandbox, record=str(record))
    begin(engine, 1, 2**62, SECOND // 5)
    time.sleep(0.4)
    engine.measure()
    time.sleep(0.5)
    end(engine)
    assert ended(record)["lasted_s"] == pytest.approx(0.2, abs=1e-5)


def test_arrivals_of_the_warm_up_are_not_among_those_measured(
    drafts: Drafts, make: Make, sandbox: Sandbox
) -> None:
    engine = make(thinking(drafts, ARRIVALS, 30, 300), sandbox)
    begin(engine, 30, SECOND // 2, SECOND // 2)
    time.sleep(1)
    end(engine)
    # Fifteen were under way when the warm-up ended: 40 would be counted with them.
    assert begun(engine) == pytest.approx(25, abs=2)


def test_users_that_leave_hand_their_arrivals_on(
    drafts: Drafts, make: Make, sandbox: Sandbox, record: Path
) -> None:
    users = 30  # who wait for the arrivals of 600 ms
    engine = make(thinking(drafts, ARRIVALS, users, 10), sandbox, record=str(record))
    begin(engine, users, 0, SECOND)
    time.sleep(0.1)
    for user in range(5, users):
        engine.stop_user(user)
    time.sleep(1)
    end(engine)
    assert ended(record)["unbegun"] == 0
    assert begun(engine) == pytest.approx(49, abs=1)
    (lag,) = (row for row in engine.totals() if row.op == "transaction.lag")
    assert lag.histogram.percentile(50) < 100 * MS, "nobody waited for a later one instead"


def test_arrivals_that_were_not_due_are_not_owed(
    drafts: Drafts, make: Make, sandbox: Sandbox, record: Path
) -> None:
    engine = make(thinking(drafts, ARRIVALS, 30, 10), sandbox, record=str(record))
    begin(engine, 30, 0, 10 * SECOND)
    time.sleep(0.2)
    engine.interrupt()
    time.sleep(0.1)
    end(engine)
    assert ended(record)["unbegun"] <= 12, "of the 30 that users waited for"
