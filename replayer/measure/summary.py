"""The form of a summary: per target, transaction and op, over all rounds and in each.

Frozen values only; ``summarise`` works them out and reports print them. A figure that the sample
does not support is null, never a guess. A *sweep* is known by its names: at least four transactions
that are alike but for a size at their end, such as ``write_64B`` … ``write_4MiB``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from replayer.measure.facts import Frozen
from replayer.ops import names_where

WAITS = names_where(lambda op: "wait" in op.flags)
"""Steps that are timed as ops, but are no calls."""

PERCENTILE_SAMPLES = {"p50_ns": 1, "p95_ns": 20, "p99_ns": 100, "p99_9_ns": 1000}
"""Chosen: a percentile is given when at least one sample is expected to lie above it."""


def samples_needed(percent: float) -> int:
    """Return how many samples a percentile needs for one to lie above it; p100 is the slowest."""
    # In parts per million, so that 99.9 gives 1,000 and not 1,001.
    above = 1_000_000 - round(percent * 10_000)
    return 1 if percent <= 50 or percent >= 100 else -(-1_000_000 // max(above, 1))  # noqa: PLR2004 - neither has a tail


class Statistics(Frozen):
    """A distribution of times in nanoseconds, of those that ended; null: too few samples."""

    count: int
    mean_ns: float | None
    stdev_ns: float | None
    min_ns: int | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p99_9_ns: int | None
    max_ns: int | None
    """The longest. Where it equals unfinished_ns, one that never ended was the longest, and the
    maximum is at least that."""
    unfinished_ns: int | None = None
    """How long the oldest had lasted of those that were cut off or that hung to the end; null: all
    ended."""

    @property
    def max_is_bound(self) -> bool:
        """Whether the maximum is at least max_ns, and how much more nobody knows."""
        return self.unfinished_ns is not None and self.unfinished_ns == self.max_ns


class OutcomeSummary(Frozen):
    """How often calls ended in one way, and how long those took."""

    outcome: str
    """``ok``, ``END`` (nothing was moved: it found the end), an errno name, ``SHORT``, ``failed``
    or ``cancelled``."""
    expected: bool
    """False: it counts as an error."""
    count: int
    mean_ns: float
    max_ns: int


class Performance(Frozen):
    """One op: how many, how fast, how many failed."""

    op: str
    count: int
    """All that ended, failed ones too; cancelled ones not."""
    errors: int
    rate_per_s: float | None
    """All that ended, per measured second; null when nothing was measured for any time."""
    throughput_per_s: float | None
    """Those that succeeded, per measured second."""
    bytes: int
    bytes_per_s: float | None
    time: Statistics
    """Service time of those that succeeded, without those that only found the end."""
    outcomes: tuple[OutcomeSummary, ...]


class TransactionSummary(Frozen):
    """One transaction: its latency as a user felt it, and the ops it was made of."""

    name: str
    count: int
    """All that ended, failed ones too; cancelled ones not."""
    errors: int
    cancelled: int
    """Cut off by the end of a round, after its grace, or still hanging then; of these times only
    max_ns counts them, as a bound."""
    rate_per_s: float | None
    throughput_per_s: float | None
    bytes: int
    bytes_per_s: float | None
    latency: Statistics
    """From the intended start to the end, of those that succeeded."""
    service: Statistics
    """From the start to the end."""
    lag: Statistics
    """From the intended start to the start."""
    event_lag: Statistics | None = None
    """The same of each event that was replayed by a clock; null where there was none."""
    outcomes: tuple[OutcomeSummary, ...]
    ops: tuple[Performance, ...]

    @property
    def called(self) -> bool:
        """Whether it made a file call."""
        return _any_call(self.ops)


class RoundSummary(Frozen):
    """One turn of a target, or all of them together."""

    number: int | None
    """Which round; null: all of them together."""
    measured_s: float
    """What rates are per second of: in closed loops until the last transaction had ended; where
    transactions come by a schedule (paced, open), as long as they could begin."""
    drain_s: float | None = None
    """How long the last ones took to end when none could begin any more; null: not known."""
    unbegun: int = 0
    """Transactions that were due and never began, as users were busy; 0 in closed loops."""
    errors: int
    """Failed transactions, or failed calls if those are more."""
    transactions: tuple[TransactionSummary, ...]
    ops: tuple[Performance, ...]
    """Each op over all transactions, and outside of any."""
    outside: tuple[Performance, ...] = ()
    """Each op outside of any transaction, as tasks of a locustfile make them."""

    @property
    def called(self) -> bool:
        """Whether a file call was made."""
        return _any_call(self.ops)

    @property
    def without_call(self) -> tuple[str, ...]:
        """The transactions that ended and made no file call."""
        return tuple(each.name for each in self.transactions if each.count and not each.called)


class TargetSummary(Frozen):
    """A target: all rounds together, and each by its number."""

    index: int
    name: str
    overall: RoundSummary
    rounds: tuple[RoundSummary, ...]


class Summary(Frozen):
    """What a run measured."""

    targets: Annotated[tuple[TargetSummary, ...], Field(min_length=1)]


def _any_call(ops: Iterable[Performance]) -> bool:
    """Whether one of these is a file call; one that was cut off counts."""
    return any(found.count for op in ops if op.op not in WAITS for found in op.outcomes)


FEWEST_SIZES = 4  # chosen

_NAME = re.compile(
    r"(?P<stem>.*?)[-_ ]?(?P<number>\d+)[-_ ]?(?P<unit>[kmg]?i?b|[kmg])$", re.IGNORECASE
)
_POWERS = {"k": 1, "m": 2, "g": 3}


@dataclass(frozen=True)
class Sweep:
    """The transactions of one stem."""

    stem: str
    """What their names have in common."""
    sizes: Mapping[str, int]
    """Size in bytes of each transaction, by its name, smallest first."""

    @property
    def labels(self) -> dict[str, str]:
        """Each size as it is written at the end of its transaction's name."""
        found = ((name, _NAME.fullmatch(name)) for name in self.sizes)
        return {name: f"{match['number']}{match['unit']}" for name, match in found if match}


def find_sweeps(names: Sequence[str]) -> tuple[Sweep, ...]:
    """Return the sweeps among transactions' names."""
    found: dict[str, dict[str, int]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None:
            size = int(match["number"]) * _unit_bytes(match["unit"].lower())
            found.setdefault(match["stem"], {})[name] = size
    return tuple(
        Sweep(stem or "size", dict(sorted(sizes.items(), key=lambda item: item[1])))
        for stem, sizes in found.items()
        if len(set(sizes.values())) >= FEWEST_SIZES
    )


def by_size(names: Sequence[str]) -> list[str]:
    """Return names in their order, those of a sweep by size from where its first one stands."""
    sweeps = find_sweeps(names)
    places = {name: place for place, name in enumerate(names)}
    first = {
        name: min(places[each] for each in found.sizes) for found in sweeps for name in found.sizes
    }
    sizes = {name: size for found in sweeps for name, size in found.sizes.items()}
    return sorted(names, key=lambda name: (first.get(name, places[name]), sizes.get(name, 0)))


def _unit_bytes(unit: str) -> int:
    """Return a unit in bytes: kB is 1,000, KiB 1,024, and a bare k too, as fio and dd have it."""
    base = 1000 if unit.endswith("b") and "i" not in unit else 1024
    return int(base ** _POWERS.get(unit[:1], 0))
