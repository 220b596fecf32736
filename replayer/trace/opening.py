"""Opens trace folders: what is in trace.json, once the native module has checked the tables."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from replayer.trace import native
from replayer.trace.errors import TraceError
from replayer.trace.shipped import TRACE_JSON

__all__ = ["believed", "load_trace", "number"]

MOST = 2**63 - 1
"""What a table could hold."""


def load_trace(folder: Path) -> dict[str, Any]:
    """Open a trace folder, check its version and checksums, and return its trace.json.

    Raises:
        TraceError: It is no trace, of another version, or damaged.
    """
    return cast("dict[str, Any]", json.loads(native.open_folder(folder)))


@contextmanager
def believed(folder: Path) -> Iterator[None]:
    """Refuse a trace whose trace.json lacks what is looked up meanwhile, or has it otherwise.

    Raises:
        TraceError: It does.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"{folder / TRACE_JSON}: holds what cannot be meant: {error!r}"
        raise TraceError(message, hint="the trace is damaged: import or copy it again") from error


def number(value: object) -> int:
    """Return a count or a time of a trace.json.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, int) and 0 <= value <= MOST:
        return value
    message = f"a number from 0 to {MOST} is needed, got {value!r:.40}"
    raise ValueError(message)
