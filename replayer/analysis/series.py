"""The series of a run: mean latency per interval, of each transaction and op on each target.

Made from the timeline; failed and cut-off calls are left out. What is found in them is found next
door (``steps``, ``drift``, ``beginnings``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from replayer.measure import Key, RunRecord, Seconds

__all__ = ["CANCELLED", "LATENCY", "SERVICE", "STUMP", "TIMES", "Series", "chart_series"]

LATENCY = "transaction"
SERVICE = "transaction.service"
TIMES = frozenset({LATENCY, SERVICE, "transaction.lag", "event.lag"})
"""The names under which times of transactions and delays, not of ops, are recorded."""
CANCELLED = "cancelled"

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kind = Literal["transaction", "op"]

STUMP = 0.3  # chosen: an interval shorter than that part of the usual one is left out


@dataclass(frozen=True, eq=False)
class Series:
    """One subject on one target, a value for each interval in which something of it ended.

    Attributes:
        target: Its index.
        subject: A transaction, or an op over all transactions; where those ran in turn, an op of
            one of them, as TRANSACTION/OP.
        kind: Which of them.
        start_s: When each interval began, seconds since the engine's begin.
        end_s: When it ended.
        rounds: In which round it lies.
        counts: How many ended in it.
        means_ns: Their mean latency.
    """

    target: int
    subject: str
    kind: Kind
    start_s: Floats
    end_s: Floats
    rounds: Integers
    counts: Floats
    means_ns: Floats

    @property
    def lengths_s(self) -> Floats:
        """How much measured time each value stands for: since the value before it."""
        before = np.concatenate([[np.nan], self.end_s[:-1]])
        new = np.concatenate([[True], self.rounds[1:] != self.rounds[:-1]])
        lengths: Floats = self.end_s - np.where(new, self.start_s, before)
        return lengths

    @property
    def time_ns(self) -> float:
        """All the time that was spent in it."""
        return float(self.counts @ self.means_ns)

    def kept(self, chosen: NDArray[np.bool_]) -> "Series":
        """Return the chosen intervals only."""
        return Series(
            self.target,
            self.subject,
            self.kind,
            self.start_s[chosen],
            self.end_s[chosen],
            self.rounds[chosen],
            self.counts[chosen],
            self.means_ns[chosen],
        )


def chart_series(record: RunRecord) -> tuple[Series, ...]:
    """Return every series of a run: each target's transactions, then its ops.

    Of jobs of fio that ran in turn, one series of an op would show where the next began, and no
    more.
    """
    keys_of = _in_turn if record.run.load.order == "in turn" else _together
    kept = [
        key
        for key in sorted(record.seconds)
        if key.segment.phase == "measured" and key.expected and key.outcome != CANCELLED
    ]
    found: dict[tuple[int, Kind, str], list[Key]] = {}
    for kind, subject, key in keys_of(kept):
        found.setdefault((key.segment.target, kind, subject), []).append(key)
    order = sorted(found, key=lambda item: (item[0], item[1] == "op"))
    return tuple(
        _without_stumps(
            _joined(target, kind, subject, [(key, record.seconds[key]) for key in keys])
        )
        for target, kind, subject in order
        for keys in [found[target, kind, subject]]
    )


def _together(keys: Sequence[Key]) -> Iterator[tuple[Kind, str, Key]]:
    for key in keys:
        if key.op == LATENCY:
            yield "transaction", key.transaction, key
        elif key.op not in TIMES:
            yield "op", key.op, key


def _in_turn(keys: Sequence[Key]) -> Iterator[tuple[Kind, str, Key]]:
    """Yield the ops of each transaction by themselves; one that has one op only is that op."""
    made: dict[tuple[int, str], set[str]] = {}
    for key in keys:
        if key.op not in TIMES:
            made.setdefault((key.segment.target, key.transaction), set()).add(key.op)
    for kind, subject, key in _together(keys):
        if kind == "transaction":
            yield kind, subject, key
        elif len(made[key.segment.target, key.transaction]) > 1:
            yield kind, f"{key.transaction}/{subject}", key


def _joined(target: int, kind: Kind, subject: str, parts: list[tuple[Key, Seconds]]) -> Series:
    """Add up the rows of one interval: all keys of it have the same begin."""
    starts = np.concatenate([part.start_s for _, part in parts])
    ends = np.concatenate([part.end_s for _, part in parts])
    counts = np.concatenate([part.count for _, part in parts])
    means = np.concatenate([part.mean_ns for _, part in parts])
    rounds = np.concatenate([np.full(part.count.size, key.segment.round) for key, part in parts])
    kept, first, place = np.unique(starts, return_index=True, return_inverse=True)
    sums = np.bincount(place, weights=counts, minlength=kept.size).astype(np.float64)
    times = np.bincount(place, weights=counts * means, minlength=kept.size).astype(np.float64)
    return Series(
        target=target,
        subject=subject,
        kind=kind,
        start_s=kept,
        end_s=ends[first],
        rounds=rounds[first].astype(np.int64),
        counts=sums,
        means_ns=np.maximum(times / np.maximum(sums, 1), 1.0),
    )


def _without_stumps(series: Series) -> Series:
    """Leave out the short intervals at the ends of rounds: their means are those of few calls."""
    lengths = series.end_s - series.start_s
    if not lengths.size:
        return series
    return series.kept(lengths >= STUMP * float(np.median(lengths)))
