"""What an analysis finds, as frozen values: the JSON report prints them, other forms describe them.

Nothing is worked out here. Times are nanoseconds for durations of calls and seconds for places in
the run.
"""

from typing import Literal

from replayer.measure.facts import Frozen

Kind = Literal["transaction", "op"]
CLIFF_FACTOR = 2.0
"""Chosen: a step to more than twice the latency is called a cliff."""


class Step(Frozen):
    """A lasting change of latency: burst credits used up, a cache that filled, a busy neighbour."""

    target: str
    subject: str
    """A transaction, or an op over all transactions."""
    kind: Kind
    direction: Literal["slower", "faster"]
    at_s: float
    """Seconds since the engine's begin, on the clock of events.jsonl."""
    round: int
    after_s: float
    """Measured seconds of this target before it."""
    sample: int
    """The number of the first sample after it, counted from 1."""
    before_ns: float
    """Median over the intervals before it, back to the step before."""
    after_ns: float
    factor: float
    """The slower of the two to the faster, at least 1."""
    lasted_s: float
    """Measured seconds until the next step or the end."""
    bytes_before: int
    """What the target had moved by then, all ops together: what a burst allowance is used up by."""
    settled: bool
    """False: it came with the last few samples, so that nobody knows whether it stays."""
    ops: tuple[str, ...]
    """Of a transaction: the ops that changed at the same time."""

    @property
    def is_cliff(self) -> bool:
        """Whether it made much slower."""
        return self.direction == "slower" and self.factor >= CLIFF_FACTOR


class Drift(Frozen):
    """A slow change of latency from the begin to the end, without steps."""

    target: str
    subject: str
    kind: Kind
    from_ns: float
    to_ns: float
    factor: float
    """to / from: above 1 is slower."""
    over_s: float


class Silence(Frozen):
    """Measured time in which a call was under way on a target and nothing ended."""

    target: str
    at_s: float
    length_s: float
    expected: float
    """How many calls usually end in such a time."""
    op: str | None
    """The call that hung, if there is an event that tells of it."""
    path: str | None


class Modes(Frozen):
    """Two groups of times with a gap between them, such as cached and not cached."""

    target: str
    subject: str
    kind: Kind
    transaction: str | None
    """Of an op: whose calls these are; null where they belong to none, and of a transaction."""
    fast_ns: int
    """Median of the fast group."""
    slow_ns: int
    gap_ns: float
    """Where the fewest samples are."""
    fast_share: float
    reading: str | None
    """What that usually is; null: not known."""


class FirstTouch(Frozen):
    """The first interval of each round was slower than those after it."""

    target: str
    subject: str
    kind: Kind
    first_ns: float
    later_ns: float
    factor: float
    rounds: int
    """In how many rounds it was looked for; it holds over all of them together."""
    over_s: float
    """How long those first intervals were, on average."""


class Outliers(Frozen):
    """Few calls that take much of the time."""

    target: str
    subject: str
    kind: Kind
    transaction: str | None
    """Of an op: whose calls these are; null where they belong to none, and of a transaction."""
    limit_ns: float
    """Calls above this are meant: 100 times the median."""
    count: int
    of: int
    time_share: float
    """Their share of the time of all such calls."""
    max_ns: int


class TailOp(Frozen):
    """An op's part in the tail of a transaction."""

    op: str
    calls: int
    """Calls that alone took longer than the limit."""


class SlowPath(Frozen):
    """A path that is among the slowest calls again and again."""

    path: str
    op: str
    calls: int
    max_ns: int


class Tail(Frozen):
    """What made the slowest transactions slow."""

    target: str
    transaction: str
    percentile: Literal["p95", "p99"]
    limit_ns: int
    slow: int
    """Transactions above the limit."""
    ops: tuple[TailOp, ...]
    """Ops with single calls above the limit, most first."""
    explained: float
    """Those calls to the slow transactions, at most 1; the rest was slow through many calls."""
    paths: tuple[SlowPath, ...]


class Between(Frozen):
    """A transaction whose slowest passed their time between calls: with this client."""

    target: str
    transaction: str
    p99_ns: int
    """From the start to the end."""
    calls_ns: int
    """More than its calls can have taken: each op's longest, as often as one makes it."""


class Unfinished(Frozen):
    """What had not ended when its turn did, and had lasted longer than the tail of what ended."""

    target: str
    subject: str
    kind: Kind
    count: int
    oldest_ns: int
    """How long the oldest had lasted by then: it takes at least that."""
    ended_max_ns: int | None
    """The longest of those that succeeded; null: none did."""


class Promise(Frozen):
    """Where data is when one op has returned."""

    op: str
    place: str


class Acknowledged(Frozen):
    """Where the data of a writing transaction is when it ends, as far as the mount tells."""

    target: str
    transaction: str
    ops: tuple[Promise, ...]
    ends: str
    """Where the data is for certain when the transaction has ended."""
    says: str


class Analysis(Frozen):
    """Everything that was found in one run."""

    steps: tuple[Step, ...]
    drifts: tuple[Drift, ...]
    silences: tuple[Silence, ...]
    modes: tuple[Modes, ...]
    first_touches: tuple[FirstTouch, ...]
    outliers: tuple[Outliers, ...]
    tails: tuple[Tail, ...]
    between: tuple[Between, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()
    acknowledged: tuple[Acknowledged, ...]
    notes: tuple[str, ...]
    """What could not be looked for, and why."""
