"""When requests were made: a table of the user's, for a log of calls does not name them."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from replayer.trace.errors import TraceError

__all__ = ["Window", "load_windows"]

HINT = (
    "each line has three tab-separated columns: start, end (seconds on the log's clock) and label"
)
NS = 1_000_000_000
LARGEST_NS = 2**62


@dataclass(frozen=True)
class Window:
    """A span of time on the log's clock, and what it is called."""

    start_ns: int
    end_ns: int
    label: str


def load_windows(path: Path) -> list[Window]:
    """Load a table of requests: start, end and label, tab-separated, one request a line.

    Raises:
        TraceError: The file cannot be read, or a line is no such row.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: {error}"
        raise TraceError(message, hint=HINT) from error
    return [
        _parse_window(line, f"{path}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith(("#", "start\t"))
    ]


def _parse_window(line: str, place: str) -> Window:
    parts = line.split("\t", 2)
    try:
        start_ns, end_ns = (int(Decimal(part) * NS) for part in parts[:2])
        label = parts[2].strip()
    except (IndexError, InvalidOperation, OverflowError, ValueError):
        message = f"{place}: not a request: {line[:80]!r}"
        raise TraceError(message, hint=HINT) from None
    if not (0 <= start_ns <= end_ns <= LARGEST_NS) or not label:
        message = (
            f"{place}: a request must not end before it begins, and must have a label,"
            f" got {line[:80]!r}"
        )
        raise TraceError(message, hint=HINT)
    return Window(start_ns, end_ns, label)
