"""Plans and folders for the tests of the native engine: real files, real threads."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replayer._native import Engine, Plan, Row, Sandbox
from tests.unit.engine.drafts import Drafts, Make, Run, Until


@pytest.fixture
def drafts() -> Drafts:
    return Drafts()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox.create(str(tmp_path), "test", "{}")


@pytest.fixture
def make() -> Iterator[Make]:
    """Make engines that are closed at the end of the test."""
    made: list[Engine] = []

    def make_engine(
        plan: Plan,
        *sandboxes: Sandbox,
        record: str | None = None,
        stuck_after_ns: int = 5_000_000_000,
        null: bool = False,
    ) -> Engine:
        targets = [[sandbox] for sandbox in sandboxes]
        engine = Engine(plan, targets, record=record, stuck_after_ns=stuck_after_ns, null=null)
        made.append(engine)
        return engine

    yield make_engine
    for engine in made:
        engine.close()


@pytest.fixture
def until() -> Until:
    """Wait until something holds, at most 10 s."""

    def wait(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < deadline, "waited for 10 s"
            time.sleep(0.005)

    return wait


@pytest.fixture
def run(make: Make, sandbox: Sandbox) -> Run:
    """Run one user until it is done: what was recorded by op, outcome and expectation."""

    def run_plan(plan: Plan) -> dict[tuple[str, str, bool], Row]:
        engine = make(plan, sandbox)
        engine.start_user(0)
        engine.begin_segment(0, 0, 0)
        deadline = time.monotonic() + 10
        while engine.busy_users() and time.monotonic() < deadline:
            time.sleep(0.002)
        assert engine.end_segment(0) == []
        return {(row.op, row.outcome, row.expected): row for row in engine.totals()}

    return run_plan
