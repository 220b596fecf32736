"""The tables of a study: the user's figures from the run folders, beside the published ones.

A row differs from the best by the rule of comparisons: rounds lie apart, and the interval of the
ratio, from resampled rounds and seconds, leaves out 1. What steps say against their own figures,
and what stands out in them, is said beside the tables.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field

from replayer.analysis.acknowledgement import find_acknowledged
from replayer.analysis.composition import analyse
from replayer.analysis.resampling import Draw, Figure, Interval, resample
from replayer.analysis.slots import Distribution, Subject, read_distributions
from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen
from replayer.measure.health import saturated
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import Outcome
from replayer.measure.summarise import summarise
from replayer.measure.summary import (
    Performance,
    RoundSummary,
    Summary,
    TargetSummary,
    TransactionSummary,
)
from replayer.report.claims import CLAIM_ROUNDS, Evidence, judge_difference
from replayer.report.description import describe_judgement
from replayer.report.findings import sentences
from replayer.report.ranking import times_of
from replayer.study.journal import Journal
from replayer.study.model import Ranking, Ratio, Study, Table, TableColumn
from replayer.verdict.judgement import Verdict, judge


@dataclass(frozen=True)
class Measured:
    """What a step (by its place in the study) has measured, and what that proves."""

    place: int
    record: RunRecord
    summary: Summary
    verdict: Verdict

    @cached_property
    def distributions(self) -> dict[Subject, Distribution]:
        """What is drawn from to tell how sure a figure is."""
        return read_distributions(self.record)


class StepVerdict(Frozen):
    """What a step's run says of its own figures."""

    step: str
    outcome: Outcome
    reasons: tuple[str, ...]
    """Limits that were missed or could not be judged, and what keeps the run from proving any."""
    is_saturated: bool = False
    """Whether the client was the limit."""


class StandOut(Frozen):
    """Something that makes figures of a step misleading: a cliff, a stall, a drift."""

    step: str
    label: str
    says: str


def load_measured(study: Study, journal: Journal) -> dict[str, Measured]:
    """Return each step that has measured something, by its last attempt that can be read."""
    loaded = ((name, _load(journal, name, place)) for place, name in enumerate(study.steps))
    return {name: found for name, found in loaded if found is not None}


def _load(journal: Journal, step: str, place: int) -> Measured | None:
    for attempt in reversed(journal.state.attempts.get(step, ())):
        with suppress(ReplayerError):
            record = load_run(journal.path / attempt.folder)
            summary = summarise(record)
            return Measured(place, record, summary, judge(record, summary))
    return None


def find_verdicts(steps: Mapping[str, Measured]) -> tuple[StepVerdict, ...]:
    """Return what the run of each step says of its own figures."""
    return tuple(
        StepVerdict(
            step=name,
            outcome=found.verdict.outcome,
            reasons=tuple(_against(found)),
            is_saturated=(health := found.record.run.health) is not None and saturated(health),
        )
        for name, found in steps.items()
    )


def _against(measured: Measured) -> Iterator[str]:
    targets = len(measured.summary.targets)
    for judgement in measured.verdict.judgements:
        if judgement.outcome != "pass":
            yield describe_judgement(judgement, targets)
    yield from measured.verdict.reasons


def find_stand_outs(steps: Mapping[str, Measured]) -> tuple[StandOut, ...]:
    """Return what stands out in the steps and makes their figures misleading."""
    return tuple(found for name, measured in steps.items() for found in _stand_outs(name, measured))


def _stand_outs(step: str, measured: Measured) -> Iterator[StandOut]:
    for part in measured.record.run.plan.parts:
        share = f"{part.percent} % of the directories of {part.dataset}"
        says = f"{share}: its time is not the time of the whole"
        yield StandOut(step=step, label="a part only", says=says)
    for found in sentences(analyse(measured.record, measured.summary)):
        if found.weight == "alarm":
            yield StandOut(step=step, label=found.label, says=found.text)


_RESAMPLED: dict[str, Figure] = {
    "rate": None,
    "throughput": None,
    "bytes_per_s": None,  # of one kind of I/O, whose sizes are those of the job
    "time_of_all": None,
    "mean": "mean",
    "p50": 50.0,
    "p95": 95.0,
    "p99": 99.0,
}


@dataclass(frozen=True, eq=False)
class RankedCell:
    """A figure that rows are ranked by, and what it rests on."""

    value: float
    evidence: Evidence


def find_evidence(
    column: TableColumn, found: Measured, target: TargetSummary, rounds: tuple[float, ...]
) -> Evidence:
    """Return what the figure of a column rests on, on one target of a step."""
    subject = _subject(column, target)
    distribution = None if subject is None else found.distributions.get(subject)
    if distribution is None or column.figure not in _RESAMPLED:
        return Evidence(rounds, 0, None)
    samples = int(distribution.table.sum())
    # Rows of several steps do not share rounds: these stood side by side in one run alone.
    drawn = resample(distribution, [_RESAMPLED[column.figure]], Draw(found.place))
    return Evidence(rounds, samples, drawn)


def shows_difference(
    column: TableColumn, own: RankedCell, best: RankedCell, rows: int
) -> tuple[bool | None, tuple[float, float] | None]:
    """Whether one row differs from the best of the user's ``rows``, and how many times it is worse.

    None: too little was measured to tell.
    """
    if min(len(each.evidence.rounds) for each in (own, best)) < CLAIM_ROUNDS:
        return None, None
    # A time of all comes from a rate, and the rate was resampled.
    over, under = (best, own) if column.figure == "time_of_all" else (own, best)
    ratio = over.value / under.value if under.value else 0.0
    figure = _RESAMPLED.get(column.figure)
    percent = figure if isinstance(figure, float) else None
    claim, interval = judge_difference(own.evidence, best.evidence, percent, ratio, rows)
    worse = _times_worse(interval, is_rate=figure is None)
    return {"differs": True, "no difference shown": False}.get(claim), worse


def _times_worse(interval: Interval | None, *, is_rate: bool) -> tuple[float, float] | None:
    """Return the interval of a ratio, or of its inverse where less is worse; None: it has none."""
    if interval is None or interval.low <= 0:
        return None
    low, high = interval.low, interval.high
    return (1 / high, 1 / low) if is_rate else (low, high)


def _subject(column: TableColumn, target: TargetSummary) -> Subject | None:
    """Return what a column is drawn from; None: an op that several transactions make."""
    transactions = target.overall.transactions
    if column.of is None:
        most = max(transactions, key=lambda item: item.count, default=None)
        return None if most is None else (target.index, "transaction", most.name)
    name, _, op = column.of.partition("/")
    if not op:
        return (target.index, "transaction", name)
    makers = Counter(each.op for found in transactions for each in found.ops)
    return (target.index, "op", op) if makers[op] == 1 else None


_UNITS = {
    "": 1.0,
    "MB/s": 1e-6,
    "MiB/s": 1 / 2**20,
    "GiB/min": 60 / 2**30,
    "µs": 1e-3,
    "ms": 1e-6,
    "s": 1e-9,
}


class ResultRow(Frozen):
    """One row: a target of the user's, or what was published."""

    target: str
    published: bool
    values: tuple[float | None, ...]
    below: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    """Columns whose value is a lower bound: the longest of it never ended."""
    stored: str | None
    """Where the data of an acknowledged write was; null: not known."""
    rank: int | None = None
    """Among all rows that have the figure."""
    differs: bool | None = None
    """Of the user's rows: whether every round of it lies beyond every round of the best of them and
    the interval of the ratio leaves out 1; null: it is the best, there is nothing to compare it
    with, or too little was measured to tell."""
    worse: tuple[float, float] | None = None
    """Between how many times it is worse than the best of them, with 95 % confidence."""
    ratio: float | None = None
    """How many times better than the row that all are compared with."""
    says: str | None = None
    """The ratio as it was published."""
    ratios: dict[str, float] = Field(default_factory=dict)
    """By column: further ratios."""
    says_also: dict[str, str] = Field(default_factory=dict)


class ResultLine(Frozen):
    """One transaction of a step on one target."""

    transaction: str
    target: str
    count: int
    errors: int
    mean_ns: float | None
    p50_ns: int | None
    p95_ns: int | None
    max_ns: int | None
    max_is_bound: bool = False
    """Whether the longest never ended: it is at least that."""


class Filled(Frozen):
    """A table with its rows, best first, or with its lines."""

    title: str
    columns: tuple[str, ...]
    ranked_by: str | None
    """The column that the rows are ranked by."""
    ratio_to: str | None
    rows: tuple[ResultRow, ...]
    lines: tuple[ResultLine, ...]
    against: tuple[StepVerdict, ...]
    """What runs say against the figures that are theirs; empty when they say nothing."""


@dataclass(frozen=True)
class _Own:
    """A row of the user's, and what its ranked figure rests on; None: it has none."""

    row: ResultRow
    ranked: RankedCell | None


def fill_tables(
    study: Study, steps: Mapping[str, Measured], *, quick: bool = False
) -> tuple[Filled, ...]:
    """Return the study's tables; without steps that were measured, as they were published."""
    return tuple(_fill(table, steps, quick=quick) for table in study.tables)


def _fill(table: Table, steps: Mapping[str, Measured], *, quick: bool) -> Filled:
    published = [ResultRow(published=True, **row.model_dump()) for row in table.published]
    own = _claimed(table, [*_own_rows(table, steps, quick=quick)])
    rows = [*published, *own]
    measured = None if table.each is None else steps.get(table.each)
    lines = () if measured is None else tuple(_lines(measured))
    return Filled(
        title=table.title,
        columns=tuple(column.title for column in table.columns),
        ranked_by=None if table.rank is None else table.rank.column,
        ratio_to=None if table.ratio is None else table.ratio.to,
        rows=tuple(_ranked(table, [_compared(table, row, rows) for row in rows])),
        lines=lines,
        against=tuple(
            found
            for found in find_verdicts(steps)
            if found.step in table.steps and found.outcome != "pass"
        ),
    )


def _own_rows(table: Table, steps: Mapping[str, Measured], *, quick: bool) -> Iterator[_Own]:
    names = dict.fromkeys(
        target.name for found in steps.values() for target in found.summary.targets
    )
    plain = {column.step: column.step for column in table.columns}
    variants = [(found.label, found.steps) for found in table.variants] or [("", plain)]
    for name in names:
        for label, mapping in variants:
            own = {step: steps[taken] for step, taken in mapping.items() if taken in steps}
            values = tuple(
                None
                if (target := _target(own.get(column.step), name)) is None
                or (quick and column.full_only)
                else _value_in(target.overall, column)
                for column in table.columns
            )
            if any(value is not None for value in values):
                row = ResultRow(
                    target=f"{name}, {label}" if label else name,
                    published=False,
                    values=values,
                    at_least=tuple(_bounds(table, own, name)),
                    stored=_stored([*own.values()], name),
                )
                yield _Own(row, _ranked_by(table, own, name))


def _ranked_by(table: Table, own: Mapping[str, Measured], name: str) -> RankedCell | None:
    """Return what a target is ranked by, with what that rests on."""
    if table.rank is None:
        return None
    column = table.columns[_place(table, table.rank.column)]
    found = own.get(column.step)
    target = _target(found, name)
    value = None if target is None else _value_in(target.overall, column)
    if found is None or target is None or value is None:
        return None
    each = (_value_in(part, column) for part in target.rounds)
    rounds = tuple(known for known in each if known is not None)
    return RankedCell(value, find_evidence(column, found, target, rounds))


def _claimed(table: Table, own: list[_Own]) -> Iterator[ResultRow]:
    """Yield the user's rows, each with whether it differs from the best of them."""
    best = None if table.rank is None else _best(table, table.rank, own)
    rows = sum(each.ranked is not None for each in own)
    for each in own:
        differs, worse = None, None
        if table.rank and best and each is not best and each.ranked and best.ranked:
            column = table.columns[_place(table, table.rank.column)]
            differs, worse = shows_difference(column, each.ranked, best.ranked, rows)
        yield each.row.model_copy(update={"differs": differs, "worse": worse})


def _best(table: Table, ranking: Ranking, own: list[_Own]) -> _Own | None:
    place = _place(table, ranking.column)
    known = [(value, each) for each in own if (value := each.row.values[place]) is not None]
    choose = max if ranking.better == "higher" else min
    return choose(known, key=lambda pair: pair[0])[1] if known else None


def _bounds(table: Table, own: Mapping[str, Measured], name: str) -> Iterator[str]:
    """Yield the titles of the columns whose value is a lower bound, on one target."""
    for column in table.columns:
        target = _target(own.get(column.step), name)
        entry = None if target is None else _entry(target.overall, column.of)
        if entry is not None and column.figure == "max" and times_of(entry).max_is_bound:
            yield column.title


def _target(found: Measured | None, name: str) -> TargetSummary | None:
    targets = () if found is None else found.summary.targets
    return next((item for item in targets if item.name == name), None)


def _value_in(part: RoundSummary, column: TableColumn) -> float | None:
    """Return the figure of a column, in its unit; None where nothing was measured."""
    entry = _entry(part, column.of)
    if entry is None or not (entry.count or times_of(entry).max_is_bound):
        return None
    value = _figure(entry, column)
    return None if value is None else value * _UNITS[column.unit]


def _entry(part: RoundSummary, of: str | None) -> TransactionSummary | Performance | None:
    transactions = part.transactions
    if of is None:
        return max(transactions, key=lambda item: item.count, default=None)
    name, _, op = of.partition("/")
    transaction = next((item for item in transactions if item.name == name), None)
    if transaction is None or not op:
        return transaction
    return next((item for item in transaction.ops if item.op == op), None)


def _figure(entry: TransactionSummary | Performance, column: TableColumn) -> float | None:
    times, rate = times_of(entry), entry.throughput_per_s
    figures: dict[str, float | None] = {
        "rate": entry.rate_per_s,
        "throughput": rate,
        "bytes_per_s": entry.bytes_per_s,
        "count": float(entry.count),
        "mean": times.mean_ns,
        "p50": times.p50_ns,
        "p95": times.p95_ns,
        "p99": times.p99_ns,
        "max": times.max_ns,
        "time_of_all": column.all / rate * 1e9 if column.all and rate else None,
    }
    return figures[column.figure]


def _stored(used: list[Measured], name: str) -> str | None:
    """Return where acknowledged writes were when a figure of them ended."""
    places = dict.fromkeys(
        each.ends
        for found in used
        for each in find_acknowledged(found.record, found.summary)
        if each.target == name
    )
    return ", ".join(places) or None


def _lines(found: Measured) -> Iterator[ResultLine]:
    for target in found.summary.targets:
        for entry in target.overall.transactions:
            yield ResultLine(
                transaction=entry.name,
                target=target.name,
                count=entry.count,
                errors=entry.errors,
                mean_ns=entry.latency.mean_ns,
                p50_ns=entry.latency.p50_ns,
                p95_ns=entry.latency.p95_ns,
                max_ns=entry.latency.max_ns,
                max_is_bound=entry.latency.max_is_bound,
            )


def _place(table: Table, title: str) -> int:
    return next(place for place, column in enumerate(table.columns) if column.title == title)


def _compared(table: Table, row: ResultRow, rows: list[ResultRow]) -> ResultRow:
    """Return the row with its ratios to the one that all are compared with."""
    ratio = None if table.ratio is None else _ratio(table, table.ratio, row, rows)
    also = {found.column: _ratio(table, found, row, rows) for found in table.also}
    known = {column: value for column, value in also.items() if value is not None}
    return row.model_copy(update={"ratio": ratio, "ratios": known})


def _ratio(table: Table, asked: Ratio, row: ResultRow, rows: list[ResultRow]) -> float | None:
    place = _place(table, asked.column)
    base = next(found for found in rows if found.target == asked.to and found.published)
    theirs = asked.base or base.values[place]
    own = theirs if row is base else row.values[place]
    if not own or not theirs:
        return None
    return own / theirs if asked.better == "higher" else theirs / own


def _ranked(table: Table, rows: list[ResultRow]) -> list[ResultRow]:
    """Return the rows with their ranks, best first; those without the figure come last."""
    if table.rank is None:
        return rows
    place = _place(table, table.rank.column)
    having = [(row.values[place], row) for row in rows]
    known = [(value, row) for value, row in having if value is not None]
    known.sort(key=lambda pair: pair[0], reverse=table.rank.better == "higher")
    ranked = [row.model_copy(update={"rank": rank}) for rank, (_, row) in enumerate(known, start=1)]
    return [*ranked, *(row for value, row in having if value is None)]
