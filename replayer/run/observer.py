"""Who follows a run while it goes on: progress is shown to them, and each interval is handed over.

A run on the command line has a terminal alone; one that the page started has the page as well.
"""

from collections.abc import Callable
from dataclasses import dataclass

from replayer.run.measured import MeasuredInterval
from replayer.run.progress import ProgressDisplay, make_progress

__all__ = ["Observer", "at_the_terminal"]


@dataclass(frozen=True)
class Observer:
    """Who is told.

    Attributes:
        progress: How far things are, several times a second.
        watch: What was measured, interval by interval.
    """

    progress: ProgressDisplay
    watch: Callable[[MeasuredInterval], None]


def at_the_terminal(*, quiet: bool) -> Observer:
    """Return the observer of a run on the command line."""
    return Observer(make_progress(quiet=quiet), lambda _interval: None)
