"""The results of a search as one JSON document."""

from collections.abc import Sequence
from math import isinf
from typing import Any

from replayer.capacity.found import Found, Point, rank
from replayer.capacity.order import CapacityOrder
from replayer.capacity.price import changes_of, price
from replayer.capacity.search import Interval
from replayer.capacity.table import answer_of, prices_of
from replayer.run.neighbour import CheckedNeighbour

__all__ = ["document_of"]

SCHEMA = "replayer-capacity-1"


def document_of(order: CapacityOrder, found: Sequence[Found]) -> dict[str, Any]:
    """Return what is known; loads in ``unit``, times in nanoseconds and, with ``_s``, seconds."""
    return {
        "schema": SCHEMA,
        "scenario": order.scenario,
        "answers": [*answer_of(order, found), *prices_of(order, found)],
        "goals": [goal.text for goal in order.goals],
        "unit": "transactions/s" if order.load.value == "arrivals" else "users",
        "precision": order.precision,
        "budget_s": order.budget_s,
        "neighbour": None if order.neighbour is None else _neighbour_of(order.neighbour),
        "prices": _prices_of(order, found),
        "targets": [_target_of(order, one, ratio) for one, ratio in rank(found)],
    }


def _neighbour_of(neighbour: CheckedNeighbour) -> dict[str, Any]:
    order = neighbour.order
    return {
        "name": order.name,
        "scenario": order.scenario,
        "rate_per_s": neighbour.rate_per_s,
        "users": neighbour.users,
    }


def _prices_of(order: CapacityOrder, found: Sequence[Found]) -> dict[str, Any] | None:
    if order.prices is None:
        return None
    priced = price(found, order.prices)
    return {
        "currency": order.prices.currency,
        "targets": [
            {
                "name": each.name,
                "views_per_s": each.views_per_s,
                "fixed_per_month": each.fixed_per_month,
                "per_month": each.per_month,
                "per_million_views": each.per_million,
            }
            for each in priced
        ],
        "changes": [
            {"views_per_s": load, "from": few.name, "to": many.name}
            for load, few, many in changes_of(priced)
        ],
    }


def _target_of(order: CapacityOrder, one: Found, ratio: Interval | None) -> dict[str, Any]:
    moved, looked_for = one.search.moved, one.credits_looked_for(order.load)
    return {
        "name": one.target.name,
        "capacity": _interval_of(one.interval),
        "is_known": one.is_known(order.precision),
        "times_less_than_first": _interval_of(ratio),
        "alone": None if one.alone is None else one.alone.target.name,
        "times_less_than_alone": _interval_of(one.loss),
        "at_least": max(one.search.held, default=None),
        "less_than": min(one.search.broke, default=None),
        "client_ran_out": one.ran_out,
        "breaks_first": one.search.weakest().text if one.search.broke else None,
        "slowest_op": one.slowest,
        "moved": None
        if moved is None
        else {
            "at_s": one.moved_at_s,
            "before": _interval_of(moved.before),
            "after": _interval_of(moved.after),
        },
        "burst": _interval_of(one.burst),
        "bucket": None
        if one.bucket is None
        else {
            "of": one.bucket.kind,
            "transactions": one.bucket.size,
            "bytes": one.bytes_of_bucket,
            "calls": one.calls_of_bucket,
            "lasts_s": _lasts_s(one, one.burst.estimate) if one.burst else None,
            "emptied_at_s": one.bucket.emptied_at_s,
            "sustained_per_s": one.bucket.refill_per_s,
            "refill_s": one.bucket.refill_s,
        },
        "no_bucket_within": None
        if looked_for is None
        else {"seconds": looked_for.seconds, "bytes": looked_for.bytes},
        "failure": one.failure,
        "trials": [_point_of(one, point) for point in one.points],
    }


def _lasts_s(one: Found, load: float) -> float | None:
    """Return how long full credits last at a load; null: for good, or there are none."""
    lasts_s = one.credits_last_s(load)
    return None if lasts_s is None or isinf(lasts_s) else lasts_s


def _interval_of(interval: Interval | None) -> dict[str, float] | None:
    if interval is None:
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high}


def _point_of(one: Found, point: Point) -> dict[str, Any]:
    found = point.transaction
    return {
        "load": point.load,
        "at_s": point.at_s,
        "seconds": point.seconds,
        "holds": point.holds,
        "credits_last_s": _lasts_s(one, point.load),
        "client_ran_out": point.is_of_client,
        "transaction": None
        if found is None
        else {
            "name": found.name,
            "count": found.count,
            "errors": found.errors,
            "throughput_per_s": found.throughput_per_s,
            "p50_ns": found.latency.p50_ns,
            "p95_ns": found.latency.p95_ns,
            "p99_ns": found.latency.p99_ns,
            "lag_p99_ns": found.lag.p99_ns,
        },
        "slowest_op": point.slowest,
    }
