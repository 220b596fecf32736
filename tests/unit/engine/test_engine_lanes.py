"""Traces of many threads are replayed by as many threads of a user: in order, and to an end."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Engine, Plan, Sandbox, trace_check_order
from tests.unit.engine.drafts import Drafts, Until

SESSIONS = Path(__file__).parents[3] / "traces" / "php" / "sessions"


@pytest.fixture
def plan(drafts: Drafts, request: pytest.FixtureRequest) -> Plan:
    """A plan that replays sixteen threads, at the pace and speed that the test asks for."""
    pace, speed = request.param
    sha256 = hashlib.sha256((SESSIONS / "trace.json").read_bytes()).hexdigest()
    step = {"do": "replay", "trace": 0, "request": None, "pace": pace, "speed_percent": speed}
    changes: dict[str, Any] = {
        "traces": [{"name": "sessions", "directory": "sessions", "sha256": sha256}],
        "users": 2,
        "datasets": [],
        "pickers": [],
        "stop": {"duration_ns": None, "transactions": 1},
    }
    document = drafts.document([step], **changes)
    return Plan(json.dumps(document).encode(), [str(SESSIONS)])


@pytest.mark.parametrize("plan", [("asap", 100), ("timed", 1_000_000)], indirect=True)
def test_every_event_waits_for_those_that_it_needs(
    plan: Plan, sandbox: Sandbox, until: Until, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.mkdir()
    sandbox.lay_out(plan, 2).result()
    engine = Engine(plan, [[sandbox]], event_log=str(log))
    engine.begin_segment(0, 0, 0)
    for user in range(2):
        engine.start_user(user)
    until(lambda: not engine.busy_users())
    engine.end_segment(1_000_000_000)
    engine.close()
    found = json.loads(trace_check_order(str(SESSIONS), str(log)))
    assert found["performances"] == 2
    assert found["edges"] > 0
    assert (found["violated"], found["first"]) == (0, None)
    events = json.loads(engine.divergences())["events"]
    assert 0 < events <= found["events"]


@pytest.mark.parametrize("plan", [("timed", 1), ("closed", 1)], indirect=True)
def test_a_long_performance_is_broken_off(plan: Plan, sandbox: Sandbox, until: Until) -> None:
    sandbox.lay_out(plan, 2).result()
    engine = Engine(plan, [[sandbox]])
    engine.begin_segment(0, 0, 0)
    engine.start_user(0)
    until(engine.busy_users)
    time.sleep(0.2)
    assert engine.end_segment(0) == []
    outcomes = {row.outcome for row in engine.totals() if row.op == "transaction"}
    assert outcomes == {"cancelled"}
    assert engine.close() == []
