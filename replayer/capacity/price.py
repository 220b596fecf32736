"""What each target costs at its capacity, and from which load on another one is cheaper.

A target's cost is a straight line of the load: what is paid whatever is used, and so much for each
page view. Both come from the user's prices and the trial with the largest load that held.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from replayer.capacity.found import Found
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.report.cost import MILLION, MONTH_S, Prices, work_out

__all__ = ["Priced", "changes_of", "price"]


@dataclass(frozen=True)
class Priced:
    """One target's costs, in the currency of the prices."""

    name: str
    views_per_s: float
    """At the capacity, or the largest load that held."""
    fixed_per_month: float
    per_million_views: float
    """Of what is used alone."""

    @property
    def per_month(self) -> float:
        """A month at the capacity."""
        return self.fixed_per_month + self._views * self.per_million_views / MILLION

    @property
    def per_million(self) -> float:
        """A million page views, of a month at the capacity."""
        return self.per_month / self._views * MILLION

    @property
    def _views(self) -> float:
        return self.views_per_s * MONTH_S


def price(found: Sequence[Found], prices: Prices) -> list[Priced]:
    """Return what the targets cost that have prices and carried a load, cheapest view first.

    Raises:
        ReplayerError: The prices name no page view of the trials.
    """
    priced = [one for one in found if one.target.name in prices.targets and one.search.held]
    return sorted((_price(one, prices) for one in priced), key=lambda each: each.per_million)


def _price(one: Found, prices: Prices) -> Priced:
    best = max((point for point in one.points if point.holds), key=lambda point: point.load)
    record = load_run(best.folder)
    (cost,) = work_out(record, summarise(record), prices).costs
    used = cost.use_per_month / cost.views_per_month * MILLION
    interval = one.interval
    # Other transactions arrive, too, and users make as many as they can.
    scale = 1.0 if interval is None else interval.estimate / best.load
    return Priced(one.target.name, cost.views_per_s * scale, cost.fixed_per_month, used)


def changes_of(priced: Sequence[Priced]) -> Iterator[tuple[float, Priced, Priced]]:
    """Yield each load, in views a second, from which on the second of two is the cheaper one.

    Only loads that both carry.
    """
    for pair in combinations(priced, 2):
        few, many = sorted(pair, key=lambda each: each.fixed_per_month)
        saved = few.per_million_views - many.per_million_views
        if saved > 0:
            views = (many.fixed_per_month - few.fixed_per_month) / saved * MILLION
            load = views / MONTH_S
            if load <= min(few.views_per_s, many.views_per_s):
                yield load, few, many
