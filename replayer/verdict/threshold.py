"""The grammar of thresholds: a line of text in, a frozen value out, or an error with its place.

    [TARGET:][SUBJECT.]METRIC COMPARISON LIMIT

SUBJECT is a transaction, an op, or TRANSACTION/OP. METRIC is a percentile (p95, p99.9), mean, min,
max (of transactions also with service. or lag. before it), errors, rate, throughput, bytes, or of
transactions how steady they were: cliff (a count) or drift (a share). Nothing is judged here.
rate counts all that ended, throughput only what succeeded; errors is a count, or with % a share.
"""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NoReturn, cast, get_args

from replayer.errors import ReplayerError
from replayer.scenario.units import DURATIONS, RATES, SIZES

NO_ERRORS = "errors == 0"
DEFAULT = "default"
AS_RECORDED = "as recorded"
"""Of a replay: events come out as recorded, or differ as is allowed."""

Comparison = Literal["<", "<=", ">", ">=", "==", "!="]
Unit = Literal["ns", "count", "share", "per_s", "bytes_per_s"]
Part = Literal["latency", "service", "lag"]

_FORM = "'[TARGET:][TRANSACTION[/OP].]METRIC COMPARISON LIMIT', for example 'page_view.p95 < 200ms'"
_LEFT = re.compile(r"\s*(?:(?P<target>[^:<>=!\s]+):)?(?P<path>[^:<>=!\s]+)\s*")
_COMPARISON = re.compile(r"<=|>=|==|!=|<|>")
_LIMIT = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[^\d\s]\S*)?\s*$")
_METRIC = re.compile(
    r"(?:(?P<subject>.+?)\.)??(?:(?P<part>service|lag)\.)?(?P<metric>p\d+\.\d+|[^.]+)$"
)
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)$")
_MOST = 10**18
"""Chosen: more than is measured in any unit."""

_Units = dict[str, Fraction]
"""Exact, so that a limit is the nearest number to what was written: 0.7 % is 7 of 1,000."""
_TIMES: _Units = {unit: Fraction(ns) for unit, ns in DURATIONS.items()}
_RATES: _Units = {unit: Fraction(1, seconds) for unit, seconds in RATES.items()}
_SHARES: _Units = {"%": Fraction(1, 100)}
_BYTES: _Units = {f"{unit}/s": Fraction(size) for unit, size in SIZES.items()}


_Named = Literal["mean", "min", "max", "errors", "rate", "throughput", "bytes", "cliff", "drift"]
_Kind = Literal["percentile", _Named]
_NAMED: tuple[_Named, ...] = get_args(_Named)


@dataclass(frozen=True)
class Metric:
    """What is compared: of a percentile which, of a transaction which of its times."""

    kind: _Kind
    part: Part = "latency"
    percent: float | None = None

    @property
    def is_time(self) -> bool:
        """Whether it is a figure of a distribution of times."""
        return self.kind in _TIME_KINDS

    @property
    def is_steadiness(self) -> bool:
        """Whether it is about how times changed during the run."""
        return self.kind in _STEADINESS


_TIME_KINDS = ("percentile", "mean", "min", "max")
_STEADINESS = ("cliff", "drift")


@dataclass(frozen=True)
class Subject:
    """Of what: ``name`` alone is a transaction or, if there is none of that name, an op."""

    name: str
    op: str | None = None

    def __str__(self) -> str:
        return self.name if self.op is None else f"{self.name}/{self.op}"


@dataclass(frozen=True)
class Threshold:
    """A limit that a run has to keep."""

    text: str
    """As it was written."""
    source: str
    """Where: a file and line, or the option."""
    target: str | None
    """The one target it is about; None: every one."""
    subject: Subject | None
    """None: everything together."""
    metric: Metric
    comparison: Comparison
    limit: float
    """In nanoseconds, per second, bytes per second, a count, or a share of 1."""
    unit: Unit
    """Which of these."""
    beside: tuple[Subject, ...] = ()
    """What other thresholds are about and this one is not, where nobody wrote it."""


@dataclass(frozen=True)
class Names:
    """What thresholds may name; with a locustfile, whose tasks bring their own, any transaction."""

    targets: tuple[str, ...]
    transactions: tuple[str, ...] | None
    ops: tuple[str, ...]


def parse_threshold(text: str, source: str) -> Threshold:
    """Parse one threshold.

    Raises:
        ReplayerError: With the value, the column and, for a name, the nearest known one.
    """
    refuse = _refusal(text, source)
    left = _LEFT.match(text)
    if left is None:
        refuse("what is compared is missing", 1, _FORM)
    sign = _COMPARISON.match(text, left.end())
    if sign is None:
        found = text[left.end() :].split(" ", 1)[0] or "the end"
        refuse(f"a comparison must follow, got {found!r}", left.end() + 1, "one of < <= > >= == !=")
    subject, metric = _parse_path(left["path"], left.start("path") + 1, refuse)
    limit, unit = _parse_limit(text, sign.end(), metric, refuse)
    is_none = metric.kind == "cliff" and sign[0] == "==" and not limit
    if metric.is_steadiness and sign[0] not in {"<", "<="} and not is_none:
        hint = "'cliff == 0', 'cliff <= 1' or 'drift < 10%'"
        refuse(f"{metric.kind} has an upper limit, got {sign[0]!r}", sign.start() + 1, hint)
    return Threshold(
        text.strip(),
        source,
        left["target"],
        subject,
        metric,
        cast("Comparison", sign[0]),
        limit,
        unit,
    )


def with_default(
    given: Iterable[tuple[str, str]], source: str = DEFAULT
) -> tuple[tuple[str, str], ...]:
    """Add to thresholds that there are no errors, unless one of them is about all errors.

    The added one is judged on what no other one about errors names: a target, a transaction, an op.
    ``given`` are texts, each with where it was written; ``source`` is that of the added one.

    Raises:
        ReplayerError: A text is no threshold.
    """
    stated = tuple(given)
    parsed = [parse_threshold(*each) for each in stated]
    errors = [each for each in parsed if each.metric.kind == "errors"]
    if any(each.target is None and each.subject is None for each in errors):
        return stated
    return (*stated, (NO_ERRORS, source))


def check_names(thresholds: Iterable[Threshold], names: Names) -> None:
    """Refuse a threshold on something that a run will not have.

    Raises:
        ReplayerError: With the nearest known name.
    """
    for threshold in thresholds:
        refuse = _refusal(threshold.text, threshold.source)
        if threshold.target is not None:
            _known("target", threshold.target, names.targets, threshold, refuse)
        subject = threshold.subject
        if subject is None or names.transactions is None:
            continue
        if subject.op is not None:
            _known("transaction", subject.name, names.transactions, threshold, refuse)
            _known("op", subject.op, names.ops, threshold, refuse)
        else:
            both = (*names.transactions, *names.ops)
            _known("transaction or op", subject.name, both, threshold, refuse)
        is_op = subject.op is not None or subject.name not in names.transactions
        if is_op and threshold.metric.part != "latency":
            column = threshold.text.find(threshold.metric.part) + 1
            refuse(f"an op has no {threshold.metric.part} time of its own", column, "leave it out")
        if is_op and threshold.metric.is_steadiness:
            kind = threshold.metric.kind
            column = threshold.text.find(str(subject)) + 1
            refuse(f"{kind} is not judged of an op", column, f"name a transaction, or {kind} alone")


_Refuse = Callable[[str, int, str], NoReturn]


def _refusal(text: str, source: str) -> _Refuse:
    def refuse(problem: str, column: int, hint: str) -> NoReturn:
        message = f"{source}: threshold {text.strip()!r}, column {column}: {problem}"
        raise ReplayerError(message, hint=hint)

    return refuse


def _parse_path(path: str, column: int, refuse: _Refuse) -> tuple[Subject | None, Metric]:
    found = _METRIC.match(path)
    if found is None:
        refuse(f"no metric in {path!r}", column, _FORM)
    metric = _parse_metric(found["metric"], found["part"], column + found.start("metric"), refuse)
    if found["subject"] is None:
        if metric.is_time:
            refuse(f"{path} of what?", column, "name a transaction or an op, as in 'page_view.p95'")
        return None, metric
    name, slash, op = found["subject"].partition("/")
    if not name or (slash and not op):
        refuse(f"half a name: {found['subject']!r}", column, "TRANSACTION, OP or TRANSACTION/OP")
    return Subject(name, op or None), metric


def _parse_metric(name: str, part: str | None, column: int, refuse: _Refuse) -> Metric:
    percentile = _PERCENTILE.match(name)
    if percentile is not None:
        percent = float(percentile[1])
        if not 0 < percent < 100:  # noqa: PLR2004 - percent
            refuse(f"a percentile lies between 0 and 100, got {name}", column, "for example p95")
        return Metric("percentile", cast("Part", part or "latency"), percent)
    kind = next((known for known in _NAMED if known == name), None)
    if kind is None:
        known = ("p50", "p95", "p99", "p99.9", *_NAMED)
        refuse(f"no metric {name!r}", column, _nearest(name, known))
    if part is not None and kind not in _TIME_KINDS:
        refuse(f"{part} is a time, {name} is none", column, f"write {name} alone")
    return Metric(kind, cast("Part", part or "latency"))


def _parse_limit(text: str, begin: int, metric: Metric, refuse: _Refuse) -> tuple[float, Unit]:
    column = len(text) - len(text[begin:].lstrip()) + 1
    found = _LIMIT.match(text, begin)
    if found is None:
        rest = text[begin:].strip() or "nothing"
        refuse(f"a limit must follow, got {rest!r}", column, "a number and its unit, such as 200ms")
    number, unit = Fraction(found["number"]), found["unit"]
    if number > _MOST:
        refuse(f"a limit must be {_MOST:,} or less", column, "a number and its unit, such as 200ms")
    if metric.kind == "errors":
        return _errors_limit(number, unit, column, refuse)
    if metric.kind == "cliff":
        if unit is not None or number.denominator != 1:
            refuse("cliffs are a count", column, "for example 'cliff == 0'")
        return float(number), "count"
    units, kind, example = _UNITS[metric.kind]
    if unit is None or unit not in units:
        wrong = "has a unit" if unit is None else f"has no unit {unit!r}"
        problem = f"a limit of {metric.kind} {wrong}, got {found[0].strip()!r}"
        refuse(problem, column, f"{example}; units are {', '.join(units)}")
    return float(number * units[unit]), kind


def _errors_limit(
    number: Fraction, unit: str | None, column: int, refuse: _Refuse
) -> tuple[float, Unit]:
    if unit == "%":
        return float(number / 100), "share"
    if unit is not None or number.denominator != 1:
        refuse(
            "errors are a count or a share", column, "for example 'errors == 0' or 'errors < 1%'"
        )
    return float(number), "count"


_UNITS: dict[str, tuple[_Units, Unit, str]] = {
    **dict.fromkeys(_TIME_KINDS, (_TIMES, "ns", "for example 200ms")),
    "rate": (_RATES, "per_s", "for example 100/s"),
    "throughput": (_RATES, "per_s", "for example 100/s"),
    "bytes": (_BYTES, "bytes_per_s", "for example 50MB/s"),
    "drift": (_SHARES, "share", "for example 10%"),
}


def _known(
    kind: str, name: str, names: tuple[str, ...], threshold: Threshold, refuse: _Refuse
) -> None:
    if name not in names:
        column = threshold.text.find(name) + 1
        refuse(f"no {kind} {name!r}", column, _nearest(name, names))


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    listed = ", ".join(dict.fromkeys(known))
    return f"did you mean {near[0]!r}? there are: {listed}" if near else f"there are: {listed}"
