"""Student's t: how much further out the ends of an interval lie where the spread is guessed.

Pure. The distribution function is a finite sum for whole degrees of freedom (Abramowitz and Stegun,
'Handbook of Mathematical Functions', 26.7.3 and 26.7.4), and is turned round by bisection.
"""

from functools import lru_cache
from math import cos, pi, sin, sqrt, tan

__all__ = ["student_quantile"]

_HALVINGS = 60  # beyond the digits of a float


@lru_cache
def student_quantile(chance: float, freedom: int) -> float:
    """Return what a t leaves behind, to either side, with this chance.

    Args:
        chance: Above 0 and below 1; of both sides together.
        freedom: Degrees of freedom, from 1 on.
    """
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if 1 - _within(middle, freedom) > chance:
            low = middle
        else:
            high = middle
    return sqrt(freedom) * tan(low)


def _within(angle: float, freedom: int) -> float:
    """Return the chance that a t is at most so far from 0: by the angle whose tangent is t/√f."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for place in range(odd + 1, freedom, 2):
        total += term
        term *= place / (place + 1) * cos(angle) ** 2
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
