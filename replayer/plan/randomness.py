"""The random numbers of plan format 1: SplitMix64, as the engines have it.

Source: Steele, Lea and Flood, 'Fast splittable pseudorandom number generators', OOPSLA 2014.
"""

from collections.abc import MutableSequence
from typing import TypeVar

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15

T = TypeVar("T")


def mix64(value: int) -> int:
    """Return the 64-bit finaliser of SplitMix64."""
    value &= MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Stream:
    """A stream of pseudo-random numbers."""

    def __init__(self, state: int) -> None:
        self._state = state & MASK

    def following(self) -> int:
        """Return the next 64 bits."""
        self._state = (self._state + GAMMA) & MASK
        return mix64(self._state)

    def below(self, bound: int) -> int:
        """Return a number from 0 up to, not including, ``bound``."""
        return (self.following() * bound) >> 64

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Shuffle in place (Fisher-Yates, from the last item down)."""
        for index in range(len(items) - 1, 0, -1):
            other = self.below(index + 1)
            items[index], items[other] = items[other], items[index]
