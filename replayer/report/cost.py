"""What a target costs a month, and a million page views, at the measured rate.

Prices come from the user's YAML file, as they change and differ by region; errors name file and
line. The calls of the whole run are shared among its page views. Bytes and ops are those of the
application's calls. A server sees others: caches answer some, and others take several requests.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from replayer.analysis.resampling import LEAST_SLOTS
from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen
from replayer.measure.record import RunRecord
from replayer.measure.summary import WAITS, Performance, Summary, TargetSummary, TransactionSummary
from replayer.measure.units import format_many, format_rate, format_time_ns
from replayer.ops import TIMED_OPS, names_where
from replayer.report.claims import CLAIM_SAMPLES
from replayer.report.style import PLAIN, Column, lay_out_grid
from replayer.scenario.document import ScenarioError, load_text, nearest_hint, parse_document
from replayer.scenario.part import Part
from replayer.scenario.refusals import explain
from replayer.verdict.reasons import find_reasons

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
    per_mb_s_month: Amount = 0.0
    """Of each provisioned MB/s: as many as reads and writes need on average."""
    per_iops_month: Amount = 0.0
    """Of each provisioned I/O a second: as many as there are reads and writes, on average."""
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


COST_SCHEMA: Literal["replayer-cost-1"] = "replayer-cost-1"
MONTH_S = 730 * 3600.0  # 730 hours: how cloud bills count a month
GB, MB = 1e9, 1e6
MILLION = 1e6
READS = names_where(lambda op: op.contents == "reads")
WRITES = names_where(lambda op: op.contents == "writes")
BOTH = names_where(lambda op: op.contents == "copies")
REPLAYED_BOTH = BOTH | {"sendfile"}
"""A scenario's sendfile sends to a socket; that of a trace may write a file as well."""


class Cost(Frozen):
    """One target's costs."""

    target: str
    views_per_s: float
    """Page views that succeeded, a second, as measured."""
    views_per_month: float
    """What it is worked out for."""
    fixed_per_month: float
    """Storage, and what is paid whatever is used."""
    use_per_month: float
    """Reads, writes and ops of all transactions; see the notes for what it may be off by."""
    per_month: float
    per_million_views: float
    sufficient: bool
    """Whether the measured rate serves that many views, spread evenly over the month."""


class Costs(Frozen):
    """The costs of all targets that have prices, cheapest first."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_name: Literal["replayer-cost-1"] = Field(default=COST_SCHEMA, alias="schema")
    run: str
    currency: str
    costs: tuple[Cost, ...]
    notes: tuple[str, ...]


def work_out(record: RunRecord, summary: Summary, prices: Prices) -> Costs:
    """Work out the costs of a run's targets, of those on which page views succeeded.

    Raises:
        ReplayerError: No target has a price, a page view is no transaction of the run, or none
            succeeded on any target.
    """
    _check_views(record, summary, prices)
    known = [target for target in summary.targets if target.name in prices.targets]
    if not known:
        names = ", ".join(target.name for target in summary.targets)
        message = f"no prices for the targets of this run ({names})"
        raise ReplayerError(message, hint=f"prices are given for {', '.join(prices.targets)}")
    both = BOTH if record.run.replay is None else REPLAYED_BOTH
    found = {target.name: cost for target in known if (cost := _cost(target, prices, both))}
    costs = list(found.values())
    if not costs:
        names = ", ".join(target.name for target in known)
        message = f"no page view succeeded on {names}, so there is no rate"
        raise ReplayerError(message, hint="views: names the transactions that are page views")
    return Costs(
        run=record.run.id,
        currency=prices.currency,
        costs=tuple(sorted(costs, key=lambda cost: cost.per_month)),
        notes=(
            *_notes(summary, prices),
            *_without_figures(known, costs),
            *_doubts(record, [target for target in known if target.name in found], prices),
        ),
    )


def render_costs(costs: Costs) -> str:
    """Render costs as text, ending with a newline."""
    lines = list(_table(costs.costs))
    views = costs.costs[0].views_per_month
    lines += [
        f"in {costs.currency}, for {views:,.0f} page views a month"
        if len({cost.views_per_month for cost in costs.costs}) == 1
        else f"in {costs.currency}, for as many page views as were measured, all month long",
        *costs.notes,
    ]
    return "\n".join(lines) + "\n"


def _table(costs: Sequence[Cost]) -> Iterator[str]:
    """Yield a header and a line for each target, columns as wide as what is in them."""
    titles = ("target", "views", "fixed", "use", "a month", "a million", "")
    rows = [
        (
            cost.target,
            format_rate(cost.views_per_s),
            f"{cost.fixed_per_month:,.2f}",
            f"{cost.use_per_month:,.2f}",
            f"{cost.per_month:,.2f}",
            f"{cost.per_million_views:,.2f}",
            "" if cost.sufficient else "too slow for that many views",
        )
        for cost in costs
    ]
    columns = [Column(title, 9) for title in titles]
    yield from lay_out_grid(columns, rows, PLAIN).lines


def _check_views(record: RunRecord, summary: Summary, prices: Prices) -> None:
    """Refuse page views that are neither in the plan nor among what was measured."""
    measured = (item.name for target in summary.targets for item in target.overall.transactions)
    known = dict.fromkeys((*_planned(record), *measured))
    unknown = [name for name in prices.views if name not in known]
    if unknown:
        message = f"views: {unknown[0]!r} is no transaction of this run"
        hint = f"there are {', '.join(known)}" if known else "nothing was measured in it"
        raise ReplayerError(message, hint=hint)


def _planned(record: RunRecord) -> Iterator[str]:
    """Yield the names of the transactions in plan.json; none of a plan of another kind."""
    plan = record.plan or {}
    with suppress(TypeError, KeyError):
        yield from (str(transaction["name"]) for transaction in plan["transactions"])


def _cost(target: TargetSummary, prices: Prices, both: frozenset[str]) -> Cost | None:
    """Return what a target costs; None where no page view succeeded.

    ``both`` names the ops that read and write at once.
    """
    views = _views(target, prices)
    price = prices.targets[target.name]
    seconds = target.overall.measured_s
    good = _good(views)
    if not good or seconds <= 0:
        return None
    rate = good / seconds
    month = prices.views_per_month or rate * MONTH_S
    fixed = price.per_month + price.per_gb_month * prices.stored_gb
    use = sum(_use(op, price, both) for op in target.overall.ops) / good * month
    return Cost(
        target=target.name,
        views_per_s=rate,
        views_per_month=month,
        fixed_per_month=fixed,
        use_per_month=use,
        per_month=fixed + use,
        per_million_views=(fixed + use) / month * MILLION,
        sufficient=rate * MONTH_S >= month,
    )


def _views(target: TargetSummary, prices: Prices) -> Sequence[TransactionSummary]:
    found = target.overall.transactions
    return [item for item in found if not prices.views or item.name in prices.views]


def _good(views: Sequence[TransactionSummary]) -> int:
    """Return how many succeeded."""
    return sum(found.count - found.errors for found in views)


def _use(op: Performance, price: TargetPrices, both: frozenset[str]) -> float:
    """Return what one op's calls of the run cost."""
    if op.op in WAITS:
        return 0.0
    each = price.per_million_ops.get(op.op, price.per_million_ops.get(OTHERS, 0.0))
    moved = 0.0
    if op.op in READS | both:
        moved += price.per_gb_read * op.bytes / GB
    if op.op in WRITES | both:
        moved += price.per_gb_written * op.bytes / GB
    if op.op in READS | WRITES | both:
        # Of one a second all month long, MONTH_S in all.
        moved += price.per_mb_s_month * op.bytes / MB / MONTH_S
        moved += price.per_iops_month * op.count / MONTH_S
    return each * op.count / MILLION + moved


def _without_figures(targets: Sequence[TargetSummary], costs: Sequence[Cost]) -> Iterator[str]:
    """Name the targets without a figure."""
    priced = {cost.target for cost in costs}
    for target in targets:
        if target.name not in priced:
            what = (
                "no page view succeeded" if target.overall.transactions else "nothing was measured"
            )
            yield f"{what} on {target.name}"


def _doubts(record: RunRecord, targets: Sequence[TargetSummary], prices: Prices) -> Iterator[str]:
    """Yield why the rates of targets may mislead."""
    for reason in find_reasons(record, Summary(targets=tuple(targets))):
        yield f"the run is inconclusive: {reason}"
    for target in targets:
        count, seconds = _good(_views(target, prices)), target.overall.measured_s
        if count < CLAIM_SAMPLES or seconds < LEAST_SLOTS:
            yield (
                f"{format_many(count, 'page view')} in {format_time_ns(seconds * 1e9)} on "
                f"{target.name}: too few to go by for a month (measure for longer)"
            )


def _notes(summary: Summary, prices: Prices) -> Iterator[str]:
    yield (
        "use is that of all calls of the run, page views or not; a bill has less where the "
        "client's cache answers, and more where a call takes several requests, the client reads "
        "ahead, or a provider rounds small requests up"
    )
    if not prices.views:
        yield "every transaction counts as a page view: views: names those that are page views"
    without = [target.name for target in summary.targets if target.name not in prices.targets]
    if without:
        yield f"no prices are given for {', '.join(without)}"
