"""Who follows a run while it goes on: progress is shown to them, and each interval is handed over.

A run on the command line has a terminal alone; one that the page started has the page as well.
"""

from collections.abc import Callable
from dataclasses import dataclass

from replayer.load.measured import MeasuredInterval
from replayer.load.progress import Progress, make_progress

__all__ = ["Audience", "at_the_terminal"]


@dataclass(frozen=True)
class Audience:
    """Who is told.

    Attributes:
        progress: How far things are, several times a second.
        watch: What was measured, interval by interval.
    """

    progress: Progress
    watch: Callable[[MeasuredInterval], None]


def at_the_terminal(*, quiet: bool) -> Audience:
    """Return the audience of a run on the command line."""
    return Audience(make_progress(quiet=quiet), lambda _interval: None)
