"""Prices, from a YAML file of the user's: none are built in, for they change and differ by region.

Validated as scenarios are, with file and line of what is wrong. What they amount to is worked out
next door (``cost``).
"""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from replayer.ops import TIMED_OPS
from replayer.scenario.document import load_text, parse_document
from replayer.scenario.part import Part
from replayer.scenario.problems import ScenarioError, nearest_hint
from replayer.scenario.refusals import explain

__all__ = ["OTHERS", "Prices", "TargetPrices", "load_prices"]

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

OTHERS = "all"
"""Stands for every op that has no price of its own."""
PRICED = frozenset({OTHERS, "trim", *TIMED_OPS})  # trim: of fio's jobs


def _refuse_unknown_ops(prices: dict[str, Amount]) -> dict[str, Amount]:
    for op in prices:
        if op not in PRICED:
            context = {"key": op, "hint": nearest_hint(op, sorted(PRICED), kind="ops")}
            raise PydanticCustomError("unknown_key", "unknown op {key}", context)
    return prices


class TargetPrices(Part):
    """What one target costs; what is left out costs nothing."""

    per_month: Amount = 0.0
    """Whatever is used: provisioned throughput, IOPS, a server."""
    per_gb_month: Amount = 0.0
    """Of stored data, a GB being 10^9 bytes."""
    per_gb_read: Amount = 0.0
    per_gb_written: Amount = 0.0
    per_million_ops: Annotated[dict[str, Amount], AfterValidator(_refuse_unknown_ops)] = Field(
        default_factory=dict
    )
    """Of single ops, by name, such as ``open``; ``all`` is the price of every other one."""


class Prices(Part):
    """A file of prices."""

    currency: str = "USD"
    stored_gb: Amount
    """How much will be stored."""
    views_per_month: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many page views a month to work it out for; left out: as many as were measured."""
    views: tuple[str, ...] = ()
    """Which transactions count as page views; left out: all. Use is that of all either way."""
    targets: Annotated[dict[str, TargetPrices], Field(min_length=1)]
    """Prices by the target's name."""


def load_prices(path: Path) -> Prices:
    """Load a file of prices.

    Raises:
        ReplayerError: It cannot be read, or says something that is no price.
    """
    document = parse_document(load_text(path), str(path))
    if not isinstance(document.value, dict):
        message = "must be a mapping of keys such as currency, stored_gb and targets"
        raise ScenarioError(str(path), message)
    try:
        return Prices.model_validate(document.value)
    except ValidationError as error:
        raise explain(error, document) from None
