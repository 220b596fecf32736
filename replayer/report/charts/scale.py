"""Scales: values to places on a picture, and where the ticks go. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

__all__ = ["Linear", "Log", "Scale"]

_MOST_DECADES = 7  # beyond that every second one is named: chosen
_FEWEST_TICKS = 4  # chosen: fewer do not say how an axis is divided
_STEPS = ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))


@dataclass(frozen=True)
class Linear:
    """Equal differences are equal distances.

    Attributes:
        low: The value at ``begin``.
        high: The value at ``end``.
        begin: A place.
        end: A place.
    """

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value lies."""
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return round values between low and high, four to eight of them."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** floor(log10(span / 4))
        step *= next((by for by in (5, 2.5, 2) if span / (step * by) >= 4), 1)  # noqa: PLR2004 - as in the docstring
        first = ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Log:
    """Equal ratios are equal distances; values are positive."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value lies; what is below the scale lies at its begin."""
        value = max(value, self.low)
        span = log10(self.high / self.low)
        share = log10(value / self.low) / span if span else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Return powers of ten; where they are few, also round numbers between them."""
        low, high = floor(log10(self.low) + 1e-9), ceil(log10(self.high) - 1e-9)
        sparse = 2 if high - low > _MOST_DECADES else 1
        for every, steps in ((sparse, _STEPS[0]), *((1, steps) for steps in _STEPS)):
            found = self._within(range(low, high + 1, every), steps)
            if len(found) >= _FEWEST_TICKS:
                break
        return found

    def _within(self, powers: range, steps: Sequence[float]) -> list[float]:
        found = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]


Scale = Linear | Log
