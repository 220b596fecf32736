"""The options of a replay, declared once for ``replayer replay`` and for Locust's command line.

What they mean for a trace is judged when the plan is compiled; here single values are.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from replayer.run.parser import Parser

__all__ = ["Pace", "ReplaySettings", "add_replay_options", "replay_words_of"]

Pace = Literal["asap", "closed", "timed", "open"]
MAX_LOOPS = 1_000_000_000  # chosen: a page view of a millisecond, for more than a week


@dataclass(frozen=True)
class ReplaySettings:
    """Which trace is replayed, and how.

    Attributes:
        trace: A folder, or the name of a shipped trace.
        pace: How its events, and with ``open`` its requests, follow each other.
        speed: 1 is as recorded; None: nothing was said.
        rate: Arrivals, such as ``50/s``; None: as recorded.
        loops: How often each user does all of it; None: once, or until the time is over.
        requests: ``LABEL`` or ``LABEL=WEIGHT`` each, empty for all; None: the whole trace.
        check_order: Whether the order of events is held against the trace's afterwards.
        event_log: Where the times of all events are kept; None: in the run folder, if needed.
    """

    trace: str
    pace: Pace = "closed"
    speed: float | None = None
    rate: str | None = None
    loops: int | None = None
    requests: tuple[str, ...] | None = None
    check_order: bool = False
    event_log: Path | None = None

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> "ReplaySettings | None":
        """Pick them out of a parsed command line; None without a trace."""
        trace = getattr(parsed, "trace", None)  # replayer run has none
        if trace is None:
            return None
        return cls(
            trace=trace,
            pace=cast("Pace", parsed.pace),
            speed=parsed.speed,
            rate=parsed.rate,
            loops=parsed.loops,
            requests=None if parsed.requests is None else tuple(parsed.requests),
            check_order=parsed.check_order,
            event_log=Path(parsed.event_log) if parsed.event_log else None,
        )


def add_replay_options(parser: Parser) -> None:
    """Declare the options of a replay, except the trace."""
    parser.add_argument(
        "--pace",
        choices=("asap", "closed", "timed", "open"),
        default="closed",
        help="how events follow each other: closed (each as long after the one before as recorded; "
        "the default), timed (by the recorded clock), asap (at once); open: requests arrive at a "
        "rate, and are closed inside",
    )
    parser.add_argument(
        "--speed", type=_read_speed, metavar="X", help="1 is as recorded (default), 2 twice as fast"
    )
    parser.add_argument(
        "--rate",
        type=_read_rate,
        metavar="RATE",
        help="requests that arrive, such as 50/s, with --pace open (default: as recorded)",
    )
    parser.add_argument(
        "--loops",
        type=_read_loops,
        metavar="N",
        help="how often each user does all of it (default: once; with -t until the time is over)",
    )
    parser.add_argument(
        "--requests",
        nargs="*",
        action="extend",
        metavar="LABEL",
        help="requests as transactions instead of the whole trace: all as often as recorded, or "
        "those named, as LABEL or LABEL=WEIGHT",
    )
    parser.add_argument(
        "--check-order",
        action="store_true",
        help="log when each event was made, and check afterwards that none overtook one that it "
        "had to wait for",
    )
    parser.add_argument(
        "--event-log",
        metavar="DIR",
        help="keep that log in a new folder (default with --check-order: events in the run folder)",
    )


def replay_words_of(settings: ReplaySettings) -> list[str]:
    """Write settings as a command line that ``add_replay_options`` reads back."""
    texts = {
        "--trace": settings.trace,
        "--pace": settings.pace,
        "--speed": settings.speed,
        "--rate": settings.rate,
        "--loops": settings.loops,
        "--event-log": settings.event_log,
    }
    requests = settings.requests
    return [
        *(["--requests"] if requests == () else ()),
        *(f"--requests={label}" for label in requests or ()),
        *(f"{name}={text}" for name, text in texts.items() if text is not None),
        *(["--check-order"] if settings.check_order else ()),
    ]


def _read_speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        message = f"must be a number above 0, such as 0.5 or 2, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return speed


def _read_rate(text: str) -> str:
    # Only when a rate is given: the models are slow to import, and help is asked for often.
    from pydantic_core import PydanticCustomError  # noqa: PLC0415

    from replayer.scenario.units import read_rate  # noqa: PLC0415

    try:
        read_rate(text)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(error.message()) from None
    return text


def _read_loops(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_LOOPS:
        message = f"must be a whole number from 1 to {MAX_LOOPS}, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)
