"""Why a trace holds no event: said wherever one was made."""

from collections.abc import Mapping
from typing import Any

__all__ = ["explain_empty"]


def explain_empty(counts: Mapping[str, Any]) -> tuple[str, str]:
    """Return why a trace with these counts holds no event, and a hint."""
    strange, lines = counts["lines_not_understood"], counts["lines"]
    if 2 * strange > lines:
        message = f"holds no event: {strange:,} of {lines:,} lines were not understood"
        return message, "--format names another format; the first such lines stand above"
    outside = sum(counts["calls_out_of_scope"].values())
    message = f"holds no event: {outside:,} calls lie outside of the roots"
    return message, "--root names a directory as the traced machine named it"
