"""In what two plans differ, for a refusal to compare them: plan.json against plan.json.

Values are shown where they are short; of long ones only that they differ.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from replayer.measure import RunRecord

__all__ = ["plan_changes"]

_LONGEST = 40  # characters of a value that is still shown: chosen
_MOST = 6  # differences that are named: chosen


def plan_changes(one: RunRecord, other: RunRecord) -> str:
    """Name what differs between the plans of two runs, in one line."""
    left, right = _plan(one), _plan(other)
    if left is None or right is None:
        return "a plan.json is missing, so in what is not known"
    found = list(_changes(left, right, ""))
    shown = ", ".join(found[:_MOST])
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"{shown}{more}" if found else "in nothing that plan.json shows"


def _plan(record: RunRecord) -> Mapping[str, Any] | None:
    try:
        found = json.loads((record.folder / "plan.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _changes(left: Mapping[str, Any], right: Mapping[str, Any], under: str) -> Iterator[str]:
    for key in sorted({*left, *right}):
        one, other = left.get(key), right.get(key)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict) and not under:
            yield from _changes(one, other, f"{key}.")
            continue
        texts = [json.dumps(value) for value in (one, other)]
        if max(map(len, texts)) <= _LONGEST:
            yield f"{under}{key} ({texts[0]} and {texts[1]})"
        else:
            yield f"{under}{key}"
