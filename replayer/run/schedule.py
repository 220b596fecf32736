"""The order of segments: each target has its turn in each round, A B A B.

Pure: what to run when. The controller does it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from replayer.errors import ReplayerError
from replayer.measure.units import NS_PER_S, format_many, format_seconds
from replayer.report.claims import CLAIM_ROUNDS

ROUNDS_OF_SEVERAL = 3  # chosen: the fewest that give a median and a spread


@dataclass(frozen=True)
class ScheduledSegment:
    """One turn of one target."""

    target: int
    round: int
    """From 0."""
    duration_ns: int | None
    """Measured time; None when the users' transactions end it."""
    title: str = "measured"
    """What progress calls the measured phase, if it has a name of its own."""
    beside: tuple[int, ...] = ()
    """Targets that are measured at the same time."""
    phase: Literal["measured", "alone"] = "measured"
    """alone: to see what a target of a duet does without the other; it counts in no figure."""

    @property
    def targets(self) -> tuple[int, ...]:
        """All targets that are at work."""
        return (self.target, *self.beside)


def fit_rounds(targets: int, round_ns: int, budget_s: int) -> tuple[int, int]:
    """Return how long a round is of a run that goes on until it has decided, and the most rounds.

    A turn of ``round_ns`` is wished; the budget is the time of all targets together.

    Raises:
        ReplayerError: The fewest rounds of the shortest length do not fit.
    """
    budget_ns = budget_s * NS_PER_S
    length_ns = max(min(round_ns, budget_ns // (targets * ROUNDS_IN_BUDGET)), SHORTEST_ROUND_NS)
    most = min(budget_ns // (targets * length_ns), MOST_ROUNDS)
    if most < CLAIM_ROUNDS:
        shortest_s = SHORTEST_ROUND_NS // NS_PER_S
        least_s = CLAIM_ROUNDS * targets * shortest_s
        message = (
            f"--budget {budget_s}s: must be at least {least_s}s, for {CLAIM_ROUNDS} rounds of "
            f"{format_seconds(shortest_s)} on {format_many(targets, 'target')}"
        )
        raise ReplayerError(message, hint="give more, or a fixed length with -t and --rounds")
    return length_ns, most


ROUNDS_IN_BUDGET = 6  # chosen: twice the fewest, if targets differ little
SHORTEST_ROUND_NS = 2 * NS_PER_S  # chosen: two intervals of the timeline
MOST_ROUNDS = 1_000  # as --rounds


def default_rounds(targets: int, *, duet: bool = False, is_judged: bool = False) -> int:
    """Return how many rounds are run when nothing is said; a run may be held against another."""
    if duet:
        return ROUNDS_OF_DUET
    rounds = 1 if targets == 1 else ROUNDS_OF_SEVERAL
    return max(rounds, CLAIM_ROUNDS) if is_judged else rounds


def make_schedule(
    targets: int, rounds: int, duration_ns: int | None
) -> tuple[ScheduledSegment, ...]:
    """Return the segments in order: all targets in the first round, then all in the next."""
    return tuple(
        ScheduledSegment(target, turn, duration_ns)
        for turn in range(rounds)
        for target in range(targets)
    )


ROUNDS_OF_DUET = 6
"""Chosen: what differs between rounds is small where targets share their moments, and six rounds
make an interval half as wide as three of twice the length do: Student's t of few is wide."""
ALONE_PARTS = 4  # chosen: a duet of 20 s has 5 s before it, or after it, for each target alone
LEAST_ALONE_NS = 2 * NS_PER_S  # chosen: two intervals of the timeline


def make_duet(rounds: int, duration_ns: int) -> tuple[ScheduledSegment, ...]:
    """Return the segments of two targets that are measured at the same time.

    In each round each target also works alone for a while: in every other round before the duet, in
    the others after it, so that neither caches nor drift favour one of the two.
    """
    return tuple(part for turn in range(rounds) for part in _duet_round(turn, duration_ns))


def _duet_round(turn: int, duration_ns: int) -> Iterator[ScheduledSegment]:
    alone_ns = min(max(duration_ns // ALONE_PARTS, LEAST_ALONE_NS), duration_ns)
    first, second = (0, 1) if turn % 2 == 0 else (1, 0)  # what is laid out last may be cached best
    both = ScheduledSegment(first, turn, duration_ns, "at the same time", beside=(second,))
    alone = [
        ScheduledSegment(target, turn, alone_ns, "alone", phase="alone")
        for target in (first, second)
    ]
    yield from (*alone, both) if turn % 2 == 0 else (both, *alone)
