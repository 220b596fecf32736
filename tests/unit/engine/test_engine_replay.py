"""Shipped traces are replayed on real files: every result is the recorded one."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Plan, Sandbox
from tests.unit.engine.drafts import Drafts, Make, Until

TRACES = Path(__file__).parents[3] / "traces"


def document(drafts: Drafts, trace: str, request: str | None, users: int) -> dict[str, Any]:
    sha256 = hashlib.sha256((TRACES / trace / "trace.json").read_bytes()).hexdigest()
    step = {"do": "replay", "trace": 0, "request": request, "pace": "asap", "speed_percent": 100}
    traces = [{"name": "trace", "directory": "trace", "sha256": sha256}]
    stop = {"duration_ns": None, "transactions": 2}
    changes: dict[str, Any] = {"users": users, "datasets": [], "pickers": [], "stop": stop}
    return drafts.document([step], traces=traces, **changes)


Replayed = Callable[[Plan], dict[str, Any]]


@pytest.fixture
def replayed(make: Make, sandbox: Sandbox, until: Until) -> Replayed:
    """Lay out, check and run two users until they are done: what their replays found."""

    def replay(plan: Plan) -> dict[str, Any]:
        sandbox.lay_out(plan, 2).result()
        assert sandbox.verify(plan, 2).result().mismatches == 0
        engine = make(plan, sandbox)
        engine.begin_segment(0, 0, 0)
        for user in range(2):
            engine.start_user(user)
        until(lambda: not engine.busy_users())
        assert engine.end_segment(1_000_000_000) == []
        found: dict[str, Any] = json.loads(engine.divergences())
        return found

    return replay


@pytest.mark.parametrize(
    ("trace", "label", "lanes"),
    [
        ("wordpress/front-warm", None, 1),
        ("wordpress/front-warm", "/", 1),
        ("wordpress/plugin-delete", None, 1),
        ("wordpress/upload", "upload", 2),
        ("php/sessions", None, 16),
    ],
)
def test_a_shipped_trace_gives_the_recorded_results_to_every_user(
    drafts: Drafts, replayed: Replayed, trace: str, label: str | None, lanes: int
) -> None:
    text = json.dumps(document(drafts, trace, label, users=2)).encode()
    plan = Plan(text, [str(TRACES / trace)])
    assert plan.replay_lanes == lanes
    found = replayed(plan)
    assert found["diverged"] == []
    assert found["performances"] == 4
    assert found["matched"] == found["compared"] == found["events"] > 0


def test_a_trace_that_changed_is_refused(drafts: Drafts) -> None:
    changed = document(drafts, "wordpress/login", None, users=1)
    with pytest.raises(ValueError, match=r"plan: traces\[0\]: .* SHA-256 .* must be"):
        Plan(json.dumps(changed).encode(), [str(TRACES / "wordpress" / "upload")])
