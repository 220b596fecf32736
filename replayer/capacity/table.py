"""The result of a search as text: a line for each target, the largest first, and its curve."""

from collections.abc import Iterator, Sequence
from math import isinf

from replayer.capacity.bucket import Bucket, Kind
from replayer.capacity.found import Found, Point, rank
from replayer.capacity.order import CapacityOrder
from replayer.capacity.price import changes_of, price
from replayer.capacity.search import Interval
from replayer.measure.units import (
    DASH,
    format_about,
    format_bytes,
    format_number,
    format_rate,
    format_time_ns,
)
from replayer.report.style import Column, Style, fold, lay_out_grid, text_width

__all__ = ["answer_of", "prices_of", "render_capacities", "rows_of", "titles_of"]

_TITLES = (("done", 5), ("p50", 3), ("p95", 7), ("p99", 4), ("lag p99", 2), ("limits", 8))
"""Of what was measured at a load. Where there is no room, what is needed least is left out."""
_CREDITS = (("credits last", 6),)
MORE_WORKERS = 4  # chosen: an example from which other numbers follow


def render_capacities(order: CapacityOrder, found: Sequence[Found], style: Style) -> str:
    """Return the answer, a line for each target, then what was measured at each load."""
    text = list(fold([*answer_of(order, found), *prices_of(order, found)], style))
    for one, _ in rank(found):
        if one.points:
            columns = (Column(one.target.name, 9), *_columns(one))
            text += ["", *lay_out_grid(columns, rows_of(order, one), style).lines]
    return style.fit("\n".join(text)) + "\n"


def answer_of(order: CapacityOrder, found: Sequence[Found]) -> Iterator[str]:
    """Yield a line for each target, the largest capacity first."""
    ranked = rank(found)
    first = ranked[0][0]
    width = max(text_width(one.target.name) for one in found)
    for one, ratio in ranked:
        name = one.target.name + " " * (width - text_width(one.target.name))
        sides = (ratio, first) if one.alone is None else (one.loss, one.alone)
        parts = [one.failure or ""] if one.is_spoiled else _parts(order, one, *sides)
        yield f"{name}  {' · '.join(parts)}"


def prices_of(order: CapacityOrder, found: Sequence[Found]) -> Iterator[str]:
    """Yield what each target costs at its capacity, and at which loads another one is cheaper."""
    if order.prices is None:
        return
    priced, currency = price(found, order.prices), order.prices.currency
    for each in priced:
        yield (
            f"{each.name}  {each.per_month:,.2f} {currency} a month at "
            f"{format_rate(each.views_per_s)} · {each.per_million:,.2f} for a million page views"
        )
    for load, few, many in changes_of(priced):
        yield f"{few.name} is cheaper below {format_rate(load)}, {many.name} above"


def titles_of(one: Found) -> tuple[str, ...]:
    """Return the titles of what was measured at each load."""
    return ("load", *(column.title for column in _columns(one)))


def _columns(one: Found) -> Iterator[Column]:
    for title, need in (*_TITLES, *(_CREDITS if one.bucket is not None else ())):
        yield Column(title, need)


def rows_of(order: CapacityOrder, one: Found) -> list[tuple[str, ...]]:
    """Return what was measured at each load, the smallest first."""
    ordered = sorted(one.points, key=lambda point: point.load)
    return [(*_row(order, point), *_credits_at(one, point.load)) for point in ordered]


def _credits_at(one: Found, load: float) -> Iterator[str]:
    lasts_s = one.credits_last_s(load)
    if lasts_s is not None:
        yield "for good" if isinf(lasts_s) else format_about(lasts_s)


def _parts(order: CapacityOrder, one: Found, ratio: Interval | None, first: Found) -> Iterator[str]:
    interval = one.interval
    if one.bucket is not None and one.burst is not None:
        yield from _credits(order, one, one.bucket, one.burst)
    elif interval is None:
        yield from _bounds(order, one)
    else:
        yield order.load.between(interval)
        yield f"stops at {one.search.weakest().text}"
        if one.slowest is not None:
            yield f"{one.slowest} takes most of the time"
        yield from _moved(order, one)
        if ratio is not None:
            yield _compared(ratio, first)
    yield from _looked_for(order, one)
    if one.failure is not None:
        yield one.failure
    elif one.points and not (one.ran_out or one.is_known(order.precision)):
        yield "so far" if one.goes_on else "not known better within the budget"


def _bounds(order: CapacityOrder, one: Found) -> Iterator[str]:
    """Say what is known of a capacity that was not found."""
    unit, held, broke = order.load, one.search.held, one.search.broke
    if held:
        yield f"at least {unit.written(max(held))}" + (
            ": the client ran out" if one.ran_out else ""
        )
    elif broke:
        yield f"less than {unit.written(min(broke))}, the smallest load that was tried"
    elif one.failure is None:
        seconds = order.seconds(order.load.first, is_bracketed=False)
        yield f"not known: the budget has no time for one trial of {format_about(seconds)}"
    if one.ran_out and held:
        load = unit.written(float(f"{MORE_WORKERS * max(held):.2g}"))
        workers = f"{MORE_WORKERS} times as many workers (--processes, --master)"
        yield f"{workers} could make about {load}"
    elif one.ran_out:
        yield "use a larger machine"


def _credits(order: CapacityOrder, one: Found, bucket: Bucket, burst: Interval) -> Iterator[str]:
    """Say what is carried with credits, for how long, and what without."""
    moved = "" if not one.bytes_of_bucket else f" or {format_bytes(one.bytes_of_bucket)}"
    lasts_s = bucket.lasts_s(burst.estimate)
    lasts = "" if isinf(lasts_s) else f": at this load credits last about {format_about(lasts_s)}"
    yield f"burst {order.load.between(burst)} for {bucket.size:,.0f} transactions{moved}{lasts}"
    yield f"sustained {order.load.written(bucket.refill_per_s)}"
    yield f"refills in about {format_about(bucket.refill_s)}"
    yield _KINDS.get(bucket.kind, f"of {bucket.kind}")
    yield f"stops at {one.search.weakest().text}"


_KINDS: dict[Kind | None, str] = {
    None: "of bytes or of calls: not told apart",
    "neither": "of neither bytes nor calls as users made them: of time, or a cache lies between",
}


def _looked_for(order: CapacityOrder, one: Found) -> Iterator[str]:
    """Say how large credits are that would not have shown."""
    found = one.credits_looked_for(order.load)
    if found is not None:
        moved = f" and {format_bytes(found.bytes)}" if found.bytes else ""
        yield f"no step within {format_about(found.seconds)}{moved}: larger credits would not show"


def _moved(order: CapacityOrder, one: Found) -> Iterator[str]:
    moved, at_s = one.search.moved, one.moved_at_s
    if moved is not None and at_s is not None:
        yield f"it was {order.load.between(moved.before)} for the first {format_about(at_s)}"


def _compared(ratio: Interval, first: Found) -> str:
    if ratio.low <= 1 <= ratio.high:
        return f"not told apart from {first.target.name}"
    low, middle, high = map(format_number, (ratio.low, ratio.estimate, ratio.high))
    return f"{first.target.name} carries {middle} times as much ({low} to {high})"


def _row(order: CapacityOrder, point: Point) -> tuple[str, ...]:
    told = "the client ran out" if point.is_of_client else "holds" if point.holds else "breaks"
    found = point.transaction
    if found is None:
        return (order.load.written(point.load), *[DASH] * 5, told)
    latency = found.latency
    times = (latency.p50_ns, latency.p95_ns, latency.p99_ns, found.lag.p99_ns)
    return (
        order.load.written(point.load),
        DASH if found.throughput_per_s is None else format_rate(found.throughput_per_s),
        *(DASH if time is None else format_time_ns(time) for time in times),
        told,
    )
