"""What is missing of a run folder, told by holding its parts against each other.

An engine writes every interval into the histograms and into the timeline, and ``run.json`` has the
summary of a run that was judged: what one of them counts, the others must count too. How rounds
ended stands among the events, and is part of the summary where it was known.
"""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from replayer.measure.hlog import Key, Log, Segment
from replayer.measure.run import Run
from replayer.measure.seconds import Seconds

__all__ = ["find_damage"]

_Counts = Mapping[Key, int]


def find_damage(
    folder: Path,
    run: Run,
    log: Log,
    seconds: Mapping[Key, Seconds],
    endings: Container[Segment],
) -> Iterator[str]:
    """Yield a sentence for each file that is missing, empty or not whole.

    A run that has written no end may have been in the middle of an interval: of that one only files
    without a byte are told.
    """
    logged = {key: histogram.count for key, histogram in log.histograms.items()}
    timed = {key: int(own.count.sum()) for key, own in seconds.items()}
    told = _transactions_told(run)
    for name, own, other, what in (
        ("histograms.hlog", logged, timed, "times and counts"),
        ("timeline.csv", timed, logged, "bytes, and what changed with time,"),
    ):
        lacking = max(sum(other.values()) - sum(own.values()), told - _transactions(own))
        state = _state(folder / name, f"lacks at least {lacking:,} results")
        if lacking > 0 and (run.ended is not None or state in _WITHOUT):
            yield f"{name} {state}: {what} are missing or too low"
    if not all(segment in endings for segment in _ended(run)):
        state = _state(folder / "events.jsonl", "does not say how each round ended")
        yield f"events.jsonl {state}: what never began, what hung and what was slow may be missing"


_WITHOUT = ("is missing", "is empty")


def _state(file: Path, otherwise: str) -> str:
    missing, empty = _WITHOUT
    if not file.exists():
        return missing
    return otherwise if file.stat().st_size else empty


def _transactions(counts: _Counts) -> int:
    return sum(
        count
        for key, count in counts.items()
        if key.segment.phase == "measured" and key.op == "transaction"
    )


def _ended(run: Run) -> Iterator[Segment]:
    """Yield the rounds of which it was known how they ended when the run was judged."""
    for target in () if run.summary is None else run.summary.targets:
        for part in target.rounds:
            if part.number is not None and part.drain_s is not None:
                yield Segment(target.index, part.number, "measured")


def _transactions_told(run: Run) -> int:
    """Return how many transactions run.json tells of; 0 where it has no summary."""
    targets = () if run.summary is None else run.summary.targets
    return sum(
        found.count + found.cancelled for target in targets for found in target.overall.transactions
    )
