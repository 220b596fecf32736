"""The fit of a trace's pauses: one factor in its trace.json, which replays apply to them."""

import hashlib
import json
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from replayer.paths import replace_content
from replayer.trace.errors import TraceError
from replayer.trace.opening import believed, load_trace
from replayer.trace.shipped import TRACE_JSON

__all__ = ["MOST_PERCENT", "Fit", "keep_fit"]

MOST_PERCENT = 10_000
"""Chosen: pauses that are a hundred times too short were not recorded with this program."""
_NO_CHECKSUM = "0" * 64


@dataclass(frozen=True)
class Fit:
    """How a trace's pauses were fitted: so that a ``closed`` replay takes as long as the command.

    Attributes:
        pauses_percent: How long each pause is, as a share of what was recorded.
        filesystem: Where the replays ran, such as ``ext4``.
        rounds: How often each of them was made.
        asap_ns: What the replay took without pauses, median.
        closed_ns: What it took with the fitted ones, median.
    """

    pauses_percent: int
    filesystem: str
    rounds: int
    asap_ns: int
    closed_ns: int


def keep_fit(folder: Path, fit: Fit | None) -> None:
    """Write a fit into a trace's trace.json, or take it out.

    Raises:
        TraceError: The trace is damaged, or its folder cannot be written.
    """
    document = load_trace(folder)
    with believed(folder):
        document["calibration"].pop("fit", None)
    if fit is not None:
        document["calibration"]["fit"] = asdict(fit)
    document["checksum"] = _NO_CHECKSUM
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    checksum = hashlib.sha256(text.encode()).hexdigest()
    content = text.replace(_NO_CHECKSUM, checksum, 1).encode()
    path = folder / TRACE_JSON
    try:
        replace_content(path, content, stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        message = f"{folder}: its {TRACE_JSON} cannot be written: {error.strerror}"
        raise TraceError(message, hint="copy the trace to where you may write") from error
