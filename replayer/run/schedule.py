"""The order of segments: each target has its turn in each round, A B A B.

Pure: what to run when. The controller does it.
"""

from dataclasses import dataclass

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


def default_rounds(targets: int) -> int:
    """Return how many rounds are run when nothing is said."""
    return 1 if targets == 1 else ROUNDS_OF_SEVERAL


def make_schedule(
    targets: int, rounds: int, duration_ns: int | None
) -> tuple[ScheduledSegment, ...]:
    """Return the segments in order: all targets in the first round, then all in the next."""
    return tuple(
        ScheduledSegment(target, turn, duration_ns)
        for turn in range(rounds)
        for target in range(targets)
    )
