"""The form of what a replay was and how far it agreed with its trace.

Frozen values only, part of run.json. The load room fills them; reports print them.
"""

from collections.abc import Mapping
from typing import Literal

from replayer.measure.facts import Frozen


class Counted(Frozen):
    """How often something of a name was met."""

    name: str
    count: int


class ReplayedTrace(Frozen):
    """A trace that was replayed."""

    name: str
    """As it was asked for."""
    sha256: str
    """Of its trace.json."""
    events: int
    threads: int
    span_ns: int
    untraced_ns: int | None = None
    """How long its command took without the tracer; null where that was not measured."""
    pauses_percent: int | None = None
    """What its pauses were fitted to, as a share of those recorded; null: they were not."""
    blind_spots: tuple[Counted, ...]
    """What the recording could not show, and how often that was met."""


class ReplayedTransaction(Frozen):
    """A transaction in which a trace, or a request of it, was replayed."""

    name: str
    trace: str
    request: str | None
    """The label; null: the whole trace."""
    pace: Literal["asap", "closed", "timed"]
    speed: float
    """1 is as recorded; without meaning where the pace is asap."""
    pauses_ns: int | None = None
    """Pauses of a performance as they were recorded, mean, at this speed; null: it has none, they
    are fitted, or an earlier version wrote this."""
    recorder_ns: int | None = None
    """How much of them the recorder may have made; null: none."""


class PastEvent(Frozen):
    """An event of the trace that came before a divergence and had to do with it."""

    row: int
    thread: int
    op: str
    path: str | None
    to_path: str | None
    result: str
    """``ok``, a number, or an errno name."""
    why: str
    """``path``, ``parent`` (a directory above was changed) or ``description`` (the same file)."""


class Divergence(Frozen):
    """One event that came out otherwise than recorded."""

    target: int
    user: int
    performance: int
    """Which of the user's performances, from 0."""
    trace: str
    row: int
    thread: int
    op: str
    path: str
    recorded: str
    """``ok`` or an errno name."""
    got: str
    """The same, or ``less`` or ``more`` than the recorded number."""
    result_recorded: int | None
    """The number that it returned, where numbers are compared."""
    result_got: int | None
    hint: str = ""
    """A likely cause, in words; empty if none is known."""
    history: tuple[PastEvent, ...] | None = None
    """What the trace says came before, newest first; only of each target's first divergence."""


class DivergenceCount(Frozen):
    """How many events came out otherwise in one way."""

    target: int
    transaction: str
    op: str
    recorded: str
    got: str
    """``ok``, an errno name, or ``less`` or ``more`` than the recorded number."""
    count: int


class ReplayedTarget(Frozen):
    """How far the replay on one target agreed with the trace."""

    index: int
    performances: int
    """How often a trace or a request was replayed."""
    events: int
    """All that were replayed or left out."""
    compared: int
    """Those whose result was recorded and can be compared."""
    matched: int
    """Those that came out as recorded; what differs as is allowed is not among them."""
    drift_ns: int
    """From when the last event of a timed performance was due to its end, the longest."""


class ReplayResults(Frozen):
    """How far a replay agreed with its trace."""

    performances: int
    events: int
    compared: int
    matched: int
    omitted: tuple[Counted, ...]
    """Events that were not made again, by reason."""
    allowed: tuple[Counted, ...]
    """Differences that mean nothing, by name."""
    diverged: tuple[DivergenceCount, ...]
    examples: tuple[Divergence, ...]
    """The first ones, at most 20."""
    targets: tuple[ReplayedTarget, ...]

    @property
    def divergences(self) -> int:
        """How many events came out otherwise than recorded and allowed."""
        return sum(each.count for each in self.diverged)


class OrderFacts(Frozen):
    """Whether events kept the order of the trace."""

    performances: int
    events: int
    edges: int
    violated: int
    first: str | None
    """The first pair that did not, in words."""


class ReplayFacts(Frozen):
    """What was replayed and what came of it."""

    traces: tuple[ReplayedTrace, ...]
    transactions: tuple[ReplayedTransaction, ...]
    lanes: int | None = None
    """Native threads that a user needs at most; null until the plan was read."""
    results: ReplayResults | None = None
    """Null until the run has ended."""
    order: OrderFacts | None = None
    """Null when it was not checked."""
    event_log: str | None = None
    """Where the times of all events are."""


def counted(named: Mapping[str, int]) -> tuple[Counted, ...]:
    """Return counts by name, most frequent first."""
    ordered = sorted(named.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Counted(name=name, count=count) for name, count in ordered)
