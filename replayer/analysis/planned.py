"""What a run's plan says of its transactions, for whoever reads the run folder."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replayer.measure import RunRecord

__all__ = ["read_plan", "steps_by_transaction"]


def read_plan(record: RunRecord) -> Mapping[str, Any]:
    """Return plan.json; empty where it is missing, damaged or no mapping."""
    try:
        plan = json.loads((record.folder / "plan.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return plan if isinstance(plan, dict) else {}


def steps_by_transaction(plan: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the steps of each transaction, however deep they lie; none of a plan of another kind.

    Whatever is a mapping counts as one: what reads them looks for keys that only steps have.
    """
    try:
        return {found["name"]: [*_mappings(found["steps"])] for found in plan["transactions"]}
    except (KeyError, TypeError):
        return {}


def _mappings(node: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(node, dict):
        yield node
    inside: Sequence[Any] = [*node.values()] if isinstance(node, dict) else node
    if isinstance(inside, list):
        for item in inside:
            yield from _mappings(item)
