"""Opens trace folders: what is in trace.json, once the native module has checked the tables."""

import json
from pathlib import Path
from typing import Any, cast

from replayer.trace import native

__all__ = ["load_trace"]


def load_trace(folder: Path) -> dict[str, Any]:
    """Open a trace folder, check its version and checksums, and return its trace.json.

    Raises:
        TraceError: It is no trace, of another version, or damaged.
    """
    return cast("dict[str, Any]", json.loads(native.open_folder(folder)))
