"""Reads what is in a trace folder's tables, as far as reports need it; the native module counts."""

import json
from pathlib import Path
from typing import Any, cast

from replayer.trace import native

__all__ = ["check_order", "load_census", "load_history", "load_labels"]


def load_census(folder: Path, request: str | None = None) -> dict[str, Any]:
    """Count what a trace, or the requests of one label in it, asks of a file system.

    ``replayer/_native.pyi`` names the keys.

    Raises:
        TraceError: It is no trace, is damaged, or has no request of this label.
    """
    return cast("dict[str, Any]", json.loads(native.census(folder, request)))


def load_history(folder: Path, row: int, limit: int = 20) -> list[dict[str, Any]]:
    """Tell which events led to the one in ``row``, newest first.

    Raises:
        TraceError: It is no trace, is damaged, or has no such row.
    """
    return cast("list[dict[str, Any]]", json.loads(native.history(folder, row, limit)))


def load_labels(folder: Path) -> dict[str, str]:
    """Return the label of each path of a trace; FORMAT.md says what they mean.

    Raises:
        TraceError: It is no trace, or is damaged.
    """
    return cast("dict[str, str]", json.loads(native.labels(folder)))


def check_order(folder: Path, log: Path) -> dict[str, Any]:
    """Hold the event log of a replay against the order of its trace.

    Raises:
        TraceError: The trace or the log cannot be read.
    """
    return cast("dict[str, Any]", json.loads(native.check_order(folder, log)))
