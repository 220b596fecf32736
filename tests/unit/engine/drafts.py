"""Plan documents with one dataset and one transaction, and the types of the fixtures."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from replayer._native import Engine, Plan, Row, Sandbox

Run = Callable[[Plan], dict[tuple[str, str, bool], Row]]
Until = Callable[[Callable[[], object]], None]
Step = dict[str, Any]


def outcomes(engine: Engine, op: str) -> dict[str, int]:
    """Count the outcomes of an op over everything that an engine has recorded."""
    counts: Counter[str] = Counter()
    for row in engine.totals():
        counts[row.outcome] += row.histogram.count * (row.op == op)
    return dict(+counts)


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

    def const(self, number: int) -> dict[str, int]:
        return {"const": number}

    def name(self, slot: int, *parts: object) -> Step:
        return {"do": "bind", "slot": slot, "name": {"dataset": 0, "parts": list(parts)}}

    def open_new(self, slot: int) -> Step:
        return self.call("open", path=slot, flags=0o102, mode=0o644)


class Make(Protocol):
    """Makes an engine that is closed when the test ends."""

    def __call__(
        self,
        plan: Plan,
        *sandboxes: Sandbox,
        record: str | None = None,
        stuck_after_ns: int = 5_000_000_000,
        null: bool = False,
    ) -> Engine: ...
