"""A run cut into slots of time, and the distribution of each subject in each slot.

What heat maps draw and what resampling draws from. The slots are the timeline's own intervals; in
long runs, several of them together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.series import CANCELLED, LATENCY, STUMP, TIMES, Kind
from replayer.measure import Key, RunRecord, Segment, bin_ns, read_slices

__all__ = ["Distribution", "Slots", "Subject", "cut_slots", "read_distributions"]

MOST_SLOTS = 240  # of a target: chosen, more than a picture is wide

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Subject = tuple[int, Kind, str]
"""A target's index, transaction or op, and its name."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Measured time, in order.

    Attributes:
        begins_s: When each slot begins, on the run's clock.
        lengths_s: How long it is, with what went by before it in silence.
        targets: Whose it is.
        rounds: In which round.
    """

    begins_s: Floats
    lengths_s: Floats
    targets: Integers
    rounds: Integers

    def of(self, target: int) -> "Slots":
        """Return those of one target."""
        own = self.targets == target
        return Slots(self.begins_s[own], self.lengths_s[own], self.targets[own], self.rounds[own])


@dataclass(frozen=True, eq=False)
class Distribution:
    """How often one subject took how long, in each slot of its target.

    Attributes:
        slots: The slots of its target.
        bins_ns: The middle of each latency bin that is not empty.
        table: Counts: a row for each slot, a column for each bin.
    """

    slots: Slots
    bins_ns: Floats
    table: Floats


def read_distributions(record: RunRecord) -> dict[Subject, Distribution]:
    """Read the distributions of all transactions and ops of a run, successful calls only."""
    slots = cut_slots(record)
    found = read_slices(record.folder / "histograms.hlog", slots.begins_s, _is_wanted)
    groups: dict[Subject, list[Key]] = {}
    for key in sorted(found):
        kind: Kind = "transaction" if key.op == LATENCY else "op"
        name = key.transaction if kind == "transaction" else key.op
        groups.setdefault((key.segment.target, kind, name), []).append(key)
    distributions = {}
    for subject, keys in groups.items():
        own = slots.targets == subject[0]
        bins = np.unique(np.concatenate([found[key].bins for key in keys]))
        table = np.sum([found[key].table(own.size, bins)[own] for key in keys], axis=0)
        distributions[subject] = Distribution(slots.of(subject[0]), bin_ns(bins), table)
    return distributions


def cut_slots(record: RunRecord) -> Slots:
    """Cut the measured time of a run into about ``MOST_SLOTS`` slots a target, at most."""
    ends = _ends(record)
    rows: list[tuple[float, float, int, int]] = []
    for segment, own in ends.items():
        number = sum(item.size for other, item in ends.items() if other.target == segment.target)
        step = -(-number // MOST_SLOTS)
        kept = _without_stump(np.unique(np.append(own[step - 1 :: step], own[-1])))
        begins = np.concatenate([[record.spans[segment].start_s], kept[:-1]])
        rows += [
            (float(begin), float(end), segment.target, segment.round)
            for begin, end in zip(begins, kept, strict=True)
        ]
    table = np.array(sorted(rows), np.float64).reshape(-1, 4)
    return Slots(
        begins_s=table[:, 0],
        lengths_s=np.maximum(table[:, 1] - table[:, 0], _INSTANT_S),
        targets=table[:, 2].astype(np.int64),
        rounds=table[:, 3].astype(np.int64),
    )


def _without_stump(ends: Floats) -> Floats:
    """Join a short last slot to the one before it: its figures are those of few calls."""
    if ends.size < 3:  # noqa: PLR2004 - no usual length is known
        return ends
    lengths = np.diff(ends)
    return np.delete(ends, -2) if lengths[-1] < STUMP * float(np.median(lengths)) else ends


_INSTANT_S = 1e-6  # the timeline's resolution


def _ends(record: RunRecord) -> dict[Segment, Floats]:
    """Return when the intervals of each measured segment ended."""
    found: dict[Segment, list[Floats]] = {}
    for key, seconds in record.seconds.items():
        if key.segment.phase == "measured" and seconds.end_s.size:
            found.setdefault(key.segment, []).append(seconds.end_s)
    return {
        segment: np.unique(np.concatenate(parts)).astype(np.float64)
        for segment, parts in sorted(found.items())
    }


def _is_wanted(key: Key) -> bool:
    timed = key.op == LATENCY or key.op not in TIMES
    return timed and key.segment.phase == "measured" and key.expected and key.outcome != CANCELLED
