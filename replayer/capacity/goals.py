"""Goals: limits on a tail, and what a trial says of them.

``front_page.p95 < 200ms`` means: at most 5 % of the page views take 200 ms or more. A trial is cut
into parts of equal time: how much they differ says how sure its share is (batch means).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replayer.errors import ReplayerError
from replayer.measure.hlog import CANCELLED, Key, Slices, bin_ns, read_slices
from replayer.measure.record import RunRecord
from replayer.measure.summarise import LATENCY, PARTS, SERVICE
from replayer.verdict.threshold import Subject, Threshold

__all__ = ["Counts", "Goal", "count_goal", "count_served", "goals_of", "settling_s"]

MOST_PARTS = 10
"""Chosen: enough to see how they differ, and each is long beside what a queue remembers."""
SETTLING, SETTLING_LIMITS = 0.2, 50
"""Before a load has filled the queues so much of a trial passes, and at most so many limits.
Measured with a queue: 10 times what it remembers."""


@dataclass(frozen=True)
class Goal:
    """At most a share of the transactions of a name may be bad: slower than a limit, or failed."""

    text: str
    """As it was written."""
    subject: Subject
    row: str
    """The op of a recorded row whose times count."""
    share: float
    limit_ns: float | None
    """From how long on one is bad; None: failed ones are, however long they took."""


@dataclass(frozen=True)
class Counts:
    """How many ended in each part of a trial, and how many of them were bad."""

    ended: NDArray[np.float64]
    bad: NDArray[np.float64]

    @property
    def share(self) -> float:
        """The share of bad ones; 1 where none ended."""
        ended = self.ended.sum()
        return float(self.bad.sum() / ended) if ended else 1.0


def goals_of(thresholds: Iterable[Threshold]) -> tuple[Goal, ...]:
    """Return the goals that thresholds stand for.

    Raises:
        ReplayerError: One is no upper limit on a percentile of a transaction or on errors.
    """
    return tuple(_goal(each) for each in thresholds)


def _goal(threshold: Threshold) -> Goal:
    metric, subject = threshold.metric, threshold.subject
    is_tail = metric.kind == "percentile" or (metric.kind == "errors" and threshold.unit == "share")
    if (
        threshold.target
        or subject is None
        or not is_tail
        or threshold.comparison not in {"<", "<="}
    ):
        raise ReplayerError(
            f"{threshold.source}: {threshold.text!r} is no goal of a capacity",
            hint="a limit on a percentile or on a share of errors, of a transaction or an op, for "
            "all targets: 'front_page.p95 < 200ms', 'front_page.errors < 0.1%'",
        )
    if metric.kind == "errors":
        return Goal(threshold.text, subject, LATENCY, threshold.limit, None)
    row = PARTS[metric.part]
    return Goal(threshold.text, subject, row, 1 - (metric.percent or 0) / 100, threshold.limit)


def count_goal(goal: Goal, record: RunRecord) -> Counts:
    """Count a goal's transactions, or calls, in each part of a run of one segment.

    What never began or was broken off counts as bad, in the last part: nobody knows how long it
    would have taken.
    """
    return _count(goal, record, goal.row, of_unbegun=1)


def count_served(goal: Goal, record: RunRecord) -> Counts:
    """Count the same by how long the target took for those that it was asked for.

    Where this keeps a goal that ``count_goal`` breaks, transactions waited for a free user.
    """
    row = SERVICE if goal.row in PARTS.values() else goal.row
    return _count(goal, record, row, of_unbegun=0)


def _count(goal: Goal, record: RunRecord, row: str, of_unbegun: int) -> Counts:
    keys = [key for key in record.log.histograms if _is_of(key, goal.subject, row)]
    if not keys:
        return Counts(np.zeros(1), np.zeros(1))
    span = record.spans[keys[0].segment]
    ending = record.endings.get(keys[0].segment)
    end_s = span.end_s if ending is None else ending.end_s
    begin_s = span.start_s + settling_s(goal, end_s - span.start_s)
    parts = max(min(int(end_s - begin_s), MOST_PARTS), 1)  # an interval of the log is a second
    begins_s = np.concatenate([[span.start_s], np.linspace(begin_s, end_s, parts + 1)[:-1]])
    slices = read_slices(record.folder / "histograms.hlog", begins_s, keys)
    ended, bad = _add(goal.limit_ns, slices, parts + 1)
    unbegun = 0 if ending is None else ending.unbegun * of_unbegun
    ended[-1] += unbegun
    bad[-1] += unbegun
    return Counts(ended, bad)


def settling_s(goal: Goal, trial_s: float) -> float:
    """Return how much of a trial passes before its load has filled the queues."""
    most = SETTLING * trial_s
    if goal.limit_ns is None:
        return most
    return min(most, max(SETTLING_LIMITS * goal.limit_ns / 1e9, 1.0))


def _is_of(key: Key, subject: Subject, row: str) -> bool:
    if key.segment.phase != "measured":
        return False
    if subject.op is not None:
        return key.transaction == subject.name and key.op == subject.op
    return (key.transaction == subject.name and key.op == row) or key.op == subject.name


def _add(
    limit_ns: float | None, slices: Mapping[Key, Slices], parts: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ended, bad = np.zeros(parts), np.zeros(parts)
    for key, own in slices.items():
        np.add.at(ended, own.slots, own.counts)
        is_bad = np.full(own.bins.shape, not key.expected or key.outcome == CANCELLED)
        if limit_ns is not None:
            is_bad |= bin_ns(own.bins) >= limit_ns
        np.add.at(bad, own.slots[is_bad], own.counts[is_bad])
    return ended[1:], bad[1:]  # the first part is the one in which the load settles
