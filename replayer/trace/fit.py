"""The fit of a trace's pauses: one factor in its trace.json, which replays apply to them."""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from replayer.trace.errors import TraceError
from replayer.trace.opening import load_trace
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

    A reader sees the old file or the new one, whole.

    Raises:
        TraceError: The trace is damaged, or its folder cannot be written.
    """
    document = load_trace(folder)
    document["calibration"].pop("fit", None)
    if fit is not None:
        document["calibration"]["fit"] = asdict(fit)
    document["checksum"] = _NO_CHECKSUM
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    checksum = hashlib.sha256(text.encode()).hexdigest()
    try:
        _replace(folder / TRACE_JSON, text.replace(_NO_CHECKSUM, checksum, 1))
    except OSError as error:
        message = f"{folder}: its {TRACE_JSON} cannot be written: {error.strerror}"
        raise TraceError(message, hint="copy the trace to where you may write") from error


def _replace(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        new = Path(file.name)
        try:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), path.stat().st_mode)
            os.fsync(file.fileno())
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
