"""What a run's plan says of its transactions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replayer.measure import RunRecord

__all__ = ["steps_by_transaction", "steps_within"]


def steps_by_transaction(record: RunRecord) -> dict[str, list[Mapping[str, Any]]]:
    """Return the steps of each transaction, however deep they lie; none of a plan of another kind.

    Whatever is a mapping counts as one: what reads them looks for keys that only steps have.
    """
    plan = record.plan or {}
    try:
        return {found["name"]: [*_mappings(found["steps"])] for found in plan["transactions"]}
    except (KeyError, TypeError, RecursionError):
        return {}


def steps_within(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps that lie in one, however deep: how often they are made is not known."""
    return [found for value in step.values() for found in _mappings(value)]


def _mappings(node: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(node, dict):
        yield node
    inside: Sequence[Any] = [*node.values()] if isinstance(node, dict) else node
    if isinstance(inside, list):
        for item in inside:
            yield from _mappings(item)
