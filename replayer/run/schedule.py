"""The order of segments: each target has its turn in each round, A B A B.

Pure: what to run when. The controller does it.
"""

from dataclasses import dataclass

ROUNDS_OF_SEVERAL = 3  # chosen: the fewest that give a median and a spread


@dataclass(frozen=True)
class ScheduledSegment:
    """One turn of one target.

    Attributes:
        round: From 0.
        duration_ns: Measured time; None when the users' transactions end it.
        title: What progress calls the measured phase, if it has a name of its own.
    """

    target: int
    round: int
    duration_ns: int | None
    title: str = "measured"


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
