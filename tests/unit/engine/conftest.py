"""Plans and folders for the tests of the native engine: real files, real threads."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from replayer.engine import Engine, Plan, Row, Sandbox

Step = dict[str, Any]


class Drafts:
    """Builds plan documents with one dataset and one transaction."""

    def document(self, steps: list[Step], **changes: object) -> dict[str, Any]:
        document: dict[str, Any] = {
            "format": 1,
            "name": "test",
            "seed": 1,
            "users": 1,
            "written": "random",
            "pool_bytes": 1 << 20,
            "tables": [],
            "datasets": [
                {
                    "name": "files",
                    "directory": "files",
                    "laid_out": True,
                    "scope": "shared",
                    "content": "random",
                    "entries": [["a", "f", 5000, 0o644, ""], ["b", "f", 100, 0o644, ""]],
                }
            ],
            "pickers": [
                {
                    "dataset": 0,
                    "types": "f",
                    "kind": "segments",
                    "segments": [[1, 0, 2]],
                    "shuffle": None,
                }
            ],
            "transactions": [{"name": "work", "steps": steps}],
            "mix": [1],
            "pace": {"kind": "closed", "think": {"const": 0}},
            "stop": {"duration_ns": None, "transactions": 1},
            "warm_up_ns": 0,
        }
        return document | changes

    def plan(self, steps: list[Step], **changes: object) -> Plan:
        return Plan(json.dumps(self.document(steps, **changes)).encode())

    def call(self, op: str, *, expect: tuple[str, ...] = ("ok",), **operands: object) -> Step:
        return {"do": "call", "op": op, "expect": list(expect), **operands}

    def name(self, slot: int, *parts: object) -> Step:
        return {"do": "bind", "slot": slot, "name": {"dataset": 0, "parts": list(parts)}}

    def open_new(self, slot: int) -> Step:
        return self.call("open", path=slot, flags=0o102, mode=0o644)


class Make(Protocol):
    def __call__(self, plan: Plan, *sandboxes: Sandbox, **options: Any) -> Engine: ...  # noqa: ANN401


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

    def make_engine(plan: Plan, *sandboxes: Sandbox, **options: Any) -> Engine:  # noqa: ANN401
        engine = Engine(plan, [[sandbox] for sandbox in sandboxes], **options)
        made.append(engine)
        return engine

    yield make_engine
    for engine in made:
        engine.close()


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Wait until something holds, at most 10 s."""

    def wait(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < deadline, "waited for 10 s"
            time.sleep(0.005)

    return wait


@pytest.fixture
def run(make: Make, sandbox: Sandbox) -> Callable[[Plan], dict[tuple[str, str, bool], Row]]:
    """Run one user until its transactions are used up; what was recorded, by op, outcome and expectation."""

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
