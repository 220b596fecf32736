"""Progress of a run: a live table on a terminal, plain lines in a pipe, or nothing; its observers.

Progress goes to stderr, results go to stdout. Nothing here asks the engine or a mount.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from replayer._native import Interval
from replayer.errors import in_one_line
from replayer.measure.summary import samples_needed
from replayer.measure.units import DASH, format_about, format_many, format_number, format_time_ns
from replayer.report.style import cut, text_width
from replayer.run.ledger import Ledger, LiveLine

LINES_EVERY_S = 5.0
REDRAWN_EVERY_S = 0.25
PERCENTILES = (50.0, 95.0, 99.0)
LINE_WIDTH = 80
"""Columns of a line in a pipe (chosen): it goes to logs, which people look at in narrow windows."""
SHORTEST_NAME = 12
SHOWN_ROWS = 24  # chosen: a table that fits an ordinary terminal

Report = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Hang:
    """A call that does not come back."""

    call: str
    """Whose, which and on what."""
    age_s: float

    def __str__(self) -> str:
        return in_one_line(f"hangs: {self.call}, for {self.age_s:.0f} s")


@dataclass(frozen=True)
class Tick:
    """The state of a running segment."""

    phase: str
    """Such as ``round 1 of 3, nfs, measured``."""
    users: int
    left_s: float | None
    """Time left in the segment; None when transactions end it."""
    ledger: Ledger
    targets: tuple[str, ...]
    hanging: tuple[Hang, ...] = ()
    done_share: float | None = None
    """How much of a segment that ends by itself is done, where it is known."""
    laid_out_bytes: int | None = None
    """How much is written of the files that a job lays out before it begins."""
    target: int = 0
    more_s: float | None = None
    """About how long the run takes until it has decided, where that is known."""


class ProgressDisplay:
    """Who is told how far things are. By itself it shows nothing."""

    @contextmanager
    def work(self, title: str) -> Iterator[Report]:
        """Show a piece of work while it lasts: entries done, of how many (0: unknown), bytes."""
        del title
        yield lambda _done, _total, _bytes: None

    def tick(self, tick: Tick) -> None:
        """Show the state of a running segment; called several times a second."""

    def say(self, text: str) -> None:
        """Show a line that stays; what matters is said again at the end."""

    def alarm(self, hang: Hang) -> None:
        """Show a call that does not come back."""
        self.say(str(hang))

    def close(self) -> None:
        """End the display."""


def make_progress(*, quiet: bool) -> ProgressDisplay:
    """Return what fits stderr: a table on a terminal, lines elsewhere; if quiet, only hangs."""
    if quiet:
        return QuietProgress(sys.stderr)
    return LiveProgress() if sys.stderr.isatty() else LineProgress(sys.stderr)


class QuietProgress(ProgressDisplay):
    """Says which calls do not come back: nobody should have to wait for that until the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._known = _KnownHangs()

    def tick(self, tick: Tick) -> None:
        """Write a line for each call that has begun to hang."""
        for hang in self._known.new_of(tick):
            self.alarm(hang)

    def alarm(self, hang: Hang) -> None:
        """Write a line."""
        print(hang, file=self._stream, flush=True)


class LineProgress(ProgressDisplay):
    """Plain lines, every few seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next = clock() + LINES_EVERY_S
        self._phase = ""
        self._known = _KnownHangs()

    @contextmanager
    def work(self, title: str) -> Iterator[Report]:
        """Write a line when it takes long, and one at its end."""
        state = (0, 0, 0)

        def report(done: int, total: int, size_bytes: int) -> None:
            nonlocal state
            state = (done, total, size_bytes)
            if self._is_due():
                self.say(_beside(title, f": {_amount(*state)}"))

        yield report
        if state[0]:
            self.say(_beside(title, f": {_amount(*state)}, done"))

    def tick(self, tick: Tick) -> None:
        """Write a line when the phase or what hangs has changed, and every few seconds."""
        for hang in self._known.new_of(tick):
            self.alarm(hang)
        if tick.phase != self._phase or self._is_due():
            self._phase = tick.phase
            self.say(_in_a_line(tick))

    def say(self, text: str) -> None:
        """Write a line."""
        print(in_one_line(text), file=self._stream, flush=True)

    def _is_due(self) -> bool:
        if self._clock() < self._next:
            return False
        self._next = self._clock() + LINES_EVERY_S
        return True


class _KnownHangs:
    """The calls that hang, once each for as long as they do."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def new_of(self, tick: Tick) -> list[Hang]:
        new = [hang for hang in tick.hanging if hang.call not in self._known]
        self._known = {hang.call for hang in tick.hanging}
        return new


class LiveProgress(ProgressDisplay):
    """A table that redraws itself at the bottom of a terminal."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._next = 0.0

    @contextmanager
    def work(self, title: str) -> Iterator[Report]:
        """Show a line that counts."""

        def report(done: int, total: int, size_bytes: int) -> None:
            self._show(lambda: Text(f"{title}: {_amount(done, total, size_bytes)}"))

        yield report

    def tick(self, tick: Tick) -> None:
        """Show the table."""
        self._show(lambda: _make_table(tick))

    def say(self, text: str) -> None:
        """Show a line above the table."""
        self._console.print(in_one_line(text), highlight=False, markup=False)

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()

    def _show(self, make: Callable[[], RenderableType]) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REDRAWN_EVERY_S
            self._live.start()  # once: it may have been closed for results
            self._live.update(make(), refresh=True)


def _make_table(tick: Tick) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    table.add_column("transaction")
    for name in ("count", "errors", *(f"p{percent:g}" for percent in PERCENTILES)):
        table.add_column(name, justify="right")
    for name, line in _rows(tick)[:SHOWN_ROWS]:
        figures = (_time(line, percent) for percent in PERCENTILES)
        table.add_row(Text(name), f"{line.count:,}", f"{line.errors:,}", *figures)
    hanging = [Text(str(hang), style="red") for hang in tick.hanging[:SHOWN_ROWS]]
    return Group(Text(f"{tick.phase}{_state(tick)}", style="bold"), table, *hanging)


def _in_a_line(tick: Tick) -> str:
    """Return the state, and times of the target's most frequent transactions, as they fit."""
    line = _beside(in_one_line(tick.phase), _state(tick))
    own = [
        (name, row) for (target, name), row in tick.ledger.lines.items() if target == tick.target
    ]
    for name, row in sorted(own, key=lambda named: (-named[1].count, named[0])):
        longer = f"{line} | {in_one_line(name)} p50 {_time(row, 50)} p95 {_time(row, 95)}"
        if text_width(longer) > LINE_WIDTH:
            break
        line = longer
    return line


def _beside(name: str, rest: str) -> str:
    """Return a line: a name, shortened so that what stands behind it fits too."""
    room = max(LINE_WIDTH - text_width(rest), SHORTEST_NAME)
    return cut(f"{cut(name, room)}{rest}", LINE_WIDTH)


def _time(line: LiveLine, percent: float) -> str:
    is_known = line.times.count >= samples_needed(percent)
    return format_time_ns(line.times.percentile(percent)) if is_known else DASH


def _state(tick: Tick) -> str:
    if tick.laid_out_bytes is not None:
        return f", laying out files: {_megabytes(tick.laid_out_bytes)}"
    ledger = tick.ledger
    errors = sum(line.errors for line in ledger.lines.values())
    rate = [] if ledger.rate is None else [f"{format_number(ledger.rate)} transactions/s"]
    parts = ["", format_many(tick.users, "user"), *rate, format_many(errors, "error")]
    if tick.left_s is not None:
        parts.append(f"{max(tick.left_s, 0):.0f} s left")
    if tick.more_s is not None:
        parts.append(f"about {format_about(tick.more_s)} more")
    if tick.done_share is not None:
        parts.append(f"{min(tick.done_share, 1):.0%} of the events done")
    return ", ".join(parts)


def _rows(tick: Tick) -> list[tuple[str, LiveLine]]:
    several = len(tick.targets) > 1
    return [
        (f"{tick.targets[target]}: {name}" if several else name, line)
        for (target, name), line in sorted(tick.ledger.lines.items())
    ]


def _amount(done: int, total: int, size_bytes: int) -> str:
    of = f" of {total:,}" if total else ""
    size = f", {_megabytes(size_bytes)}" if size_bytes else ""
    return f"{done:,}{of} entries{size}"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"


@dataclass(frozen=True)
class Observer:
    """Who is told."""

    progress: ProgressDisplay
    watch: Callable[[Interval], None]


def at_the_terminal(*, quiet: bool) -> Observer:
    """Return the observer of a run on the command line."""
    return Observer(make_progress(quiet=quiet), lambda _interval: None)
