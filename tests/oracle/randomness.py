"""Seeded numbers as plan format 1 defines them. There is no other source of chance here."""

from collections.abc import Sequence
from itertools import accumulate

MASK = 2**64 - 1
G = 0x9E3779B97F4A7C15


def mix64(z: int) -> int:
    """Scramble 64 bits (the finaliser of SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def scaled(x: int, n: int) -> int:
    """Turn 64 random bits into a number below n."""
    return x * n >> 64


class Stream:
    """A sequence of draws."""

    def __init__(self, state: int) -> None:
        self.state = state

    def draw(self) -> int:
        """Draw 64 bits."""
        self.state = (self.state + G) & MASK
        return mix64(self.state)

    def below(self, n: int) -> int:
        """Draw a number from 0 to n - 1."""
        return scaled(self.draw(), n)

    def weighted(self, weights: Sequence[int]) -> int:
        """Draw the index of the first cumulative weight above a number below their sum."""
        drawn = self.below(sum(weights))
        return next(i for i, above in enumerate(accumulate(weights)) if above > drawn)


def ops_stream(seed: int, round_number: int, user: int) -> Stream:
    """Make the stream of a user's choices and draws in one round."""
    of_round = mix64((seed + G * (round_number + 1)) & MASK)
    return Stream(mix64((of_round + G * (user + 1)) & MASK))


def stage_stream(ops: Stream, pipeline: int, stage: int) -> Stream:
    """Make the stream of a stage of a pipeline, from that of its user at the segment's begin."""
    of_pipeline = mix64((ops.state + G * (pipeline + 1)) & MASK)
    return Stream(mix64((of_pipeline + G * (stage + 1)) & MASK))


def shuffled(count: int, seed: int) -> list[int]:
    """Shuffle the numbers below count (Fisher and Yates)."""
    order, stream = list(range(count)), Stream(seed)
    for i in range(count - 1, 0, -1):
        j = stream.below(i + 1)
        order[i], order[j] = order[j], order[i]
    return order
