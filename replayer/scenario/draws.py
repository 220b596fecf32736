"""Numbers of a scenario that are drawn: sizes, times and counts from distributions.

Only their description lives here; ``replayer.plan.scope`` turns it into tables of integers.
"""

from itertools import pairwise
from typing import Annotated, ClassVar, Generic, Self, TypeVar

from pydantic import Field, model_validator

from replayer.scenario.document import nearest_hint
from replayer.scenario.part import Part, SlotName
from replayer.scenario.units import Count, Duration, Size, wrong

T = TypeVar("T")

MAX_VALUES = 65_536
"""Chosen: sixteen times the resolution that distributions are compiled with."""


class Lognormal(Part, Generic[T]):
    """Given by its median and its 95th percentile."""

    median: T
    p95: T

    @model_validator(mode="after")
    def _p95_is_above(self) -> Self:
        if not 0 < self.median <= self.p95:  # type: ignore[operator]
            raise wrong("median must be more than 0, and p95 at least the median")
        return self


class Draw(Part, Generic[T]):
    """Exactly one of: a constant, or a distribution."""

    KINDS: ClassVar[tuple[str, ...]] = (
        "uniform",
        "lognormal",
        "exponential",
        "values",
        "quantiles",
    )

    const: T | None = None
    uniform: tuple[T, T] | None = None
    lognormal: Lognormal[T] | None = None
    exponential: T | None = None
    values: Annotated[tuple[T, ...], Field(min_length=1, max_length=MAX_VALUES)] | None = None
    quantiles: Annotated[tuple[T, ...], Field(min_length=2, max_length=MAX_VALUES)] | None = None
    size_of: SlotName | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        if not isinstance(value, dict):
            return {"const": value}
        for name in value:
            if name not in cls.KINDS:
                hint = nearest_hint(name, cls.KINDS, kind="distributions")
                raise wrong(f"{name} is not a distribution", hint)
        if len(value) != 1:
            hint = f"known distributions: {', '.join(cls.KINDS)}"
            raise wrong(f"must name exactly one distribution, got {len(value)}", hint)
        return value

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        row = self.uniform or self.quantiles or ()
        if any(low > high for low, high in pairwise(row)):  # type: ignore[operator]
            raise wrong("must be in ascending order")
        return self


class SizeDraw(Draw[Size]):
    """Bytes: these may be the size of what a name is bound to."""

    KINDS: ClassVar[tuple[str, ...]] = (*Draw.KINDS, "size_of")


class DurationDraw(Draw[Duration]):
    """Nanoseconds."""


class CountDraw(Draw[Count]):
    """Whole numbers."""
