"""What the page shows of the run that goes on: where it is, what it lays out, what hangs.

The run reports to it as to the terminal; every word is passed on there too.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from replayer.run.progress import Hang, ProgressDisplay, Report, Tick

__all__ = ["LiveStatus", "WorkInProgress"]

MOST_HANGS = 20  # chosen: more lines than a person reads


@dataclass
class WorkInProgress:
    """Work before or between segments, such as laying out."""

    title: str
    done: int = 0
    total: int = 0
    bytes: int = 0


@dataclass
class LiveStatus:
    """The state of a run, as told last.

    Attributes:
        terminal: Who is told as well.
        tick: The running segment's state; None before the first.
        work: What is being done to a target now.
        said: Lines that stay.
        worst: How many calls hung at once since it was asked last.
    """

    terminal: ProgressDisplay
    tick_now: Tick | None = None
    work_now: WorkInProgress | None = None
    said: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_HANGS))
    _worst: int = 0

    @contextmanager
    def work(self, title: str) -> Iterator[Report]:
        """Keep how far a piece of work is, while it lasts."""
        self.work_now = WorkInProgress(title)
        try:
            with self.terminal.work(title) as report:

                def both(done: int, total: int, size_bytes: int) -> None:
                    self.work_now = WorkInProgress(title, done, total, size_bytes)
                    report(done, total, size_bytes)

                yield both
        finally:
            self.work_now = None

    def tick(self, tick: Tick) -> None:
        """Keep the state of a running segment."""
        self.tick_now = tick
        self._worst = max(self._worst, len(tick.hanging))
        self.terminal.tick(tick)

    def say(self, text: str) -> None:
        """Keep a line."""
        self.said.append(text)
        self.terminal.say(text)

    def alarm(self, hang: Hang) -> None:
        """Keep a line of a call that does not come back."""
        self.said.append(str(hang))
        self.terminal.alarm(hang)

    def close(self) -> None:
        """The run is over."""
        self.tick_now = None
        self.terminal.close()

    @property
    def hanging(self) -> tuple[Hang, ...]:
        """Calls that do not come back now, longest first."""
        return () if self.tick_now is None else self.tick_now.hanging[:MOST_HANGS]

    def take_worst(self) -> int:
        """Return how many calls hung at once since this was asked last."""
        worst, self._worst = self._worst, len(self.hanging)
        return worst
