"""The form of what a duet found of itself: whether its two targets slow each other down.

Frozen values only, part of run.json. The report works them out; the verdict judges by them.
"""

from typing import Literal

from replayer.measure.facts import Frozen
from replayer.measure.health import Health, saturated
from replayer.measure.units import format_ratio

SLOWED = 1.1
"""Chosen: a target that takes less than a tenth longer beside the other shares little with it. Who
picks a mount seldom cares for less, and two busy CPUs of one chip cost each other some per cent."""


class BesideAlone(Frozen):
    """A percentile of all transactions of a target, beside the other one and without it."""

    target: str
    figure: Literal["p50", "p95"]
    alone_ns: float
    beside_ns: float
    ratio: float
    """How many times as long it takes beside the other."""
    low: float | None
    """Of the ratio's 95 % interval, which holds for all figures together; null: too little was
    measured."""
    high: float | None

    @property
    def is_slowed(self) -> bool:
        """Whether the other slows it down, as far as noise lets that be known."""
        return self.low is not None and self.low > 1 and self.ratio > SLOWED


class Duet(Frozen):
    """What each target did beside the other, and what it did alone."""

    figures: tuple[BesideAlone, ...]

    def why_not(self, targets: tuple[str, ...], health: Health | None) -> str | None:
        """Say why the targets must not be compared by this duet; None: they may."""
        one, other = targets
        if health is not None and saturated(health):
            return f"this client was too busy to measure {one} and {other} at the same time"
        slowed = [each for each in self.figures if each.is_slowed]
        if slowed:
            told = "; ".join(_say(each, one if each.target == other else other) for each in slowed)
            return (
                f"{one} and {other} slow each other down, so they share something: {told}; "
                "measure them in turns (without --duet)"
            )
        known = {each.target for each in self.figures if each.low is not None}
        unknown = [name for name in targets if name not in known]
        if unknown:
            return (
                f"too little was measured of {' and '.join(unknown)} alone to tell whether {one} "
                f"and {other} share something; measure longer (-t)"
            )
        return None


def _say(figure: BesideAlone, beside: str) -> str:
    between = f" ({format_ratio(figure.low or 0)} to {format_ratio(figure.high or 0)}; 95 %)"
    return (
        f"{figure.figure} of {figure.target} is {format_ratio(figure.ratio)} times as long beside "
        f"{beside} as alone{between}"
    )
