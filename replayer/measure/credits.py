"""Credits as a cloud counts them: exported metrics, read and laid beside a run. Pure but for files.

CloudWatch's JSON is that of ``aws cloudwatch get-metric-statistics`` and ``get-metric-data`` (AWS
CLI Command Reference). The CSV of its console is not specified: rows without a time come first and
say what is in which column, then each row has a time in UTC and a value of each metric.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

from replayer.errors import ReplayerError
from replayer.measure.record import RunRecord
from replayer.measure.run import CloudMetric, CloudUnit

METRICS: Mapping[str, CloudUnit] = {
    "BurstCreditBalance": "bytes",
    "PercentIOLimit": "percent",
    "BurstBalance": "percent",
    "CPUCreditBalance": "CPU minutes",
}
"""EFS; EFS; gp2, st1 and sc1 volumes; t2 to t4 instances ('Amazon EFS', 'Amazon EBS' and 'Amazon
EC2 user guide', CloudWatch metrics)."""
_STATISTICS = ("Average", "Minimum", "Maximum", "Sum")
MOST_BYTES = 16 * 2**20  # chosen: 100,800 points, as many as one request returns, are 8 MB
USUAL_S = 60.0
"""A point stands for the minute from its time on, where there is one only (EFS, EC2)."""


@dataclass(frozen=True)
class _Series:
    """All points of a metric: times since the epoch, and values."""

    metric: str
    points: tuple[tuple[float, float], ...]


def with_credits(record: RunRecord, files: Sequence[Path]) -> RunRecord:
    """Return the record of a run with what files of metrics have of its time.

    Raises:
        ReplayerError: A file cannot be read, or is none of metrics.
    """
    if not files:
        return record
    found = tuple(_beside(record, path, series) for path in files for series in _load_series(path))
    return replace(record, run=record.run.model_copy(update={"credits": found}))


def check_credits(files: Sequence[Path]) -> None:
    """Refuse files that cannot be read, or are none of metrics, before a run."""
    for path in files:
        _load_series(path)


def _beside(record: RunRecord, path: Path, series: _Series) -> CloudMetric:
    times = [at_s for at_s, _ in series.points]
    period_s = median(after - before for before, after in pairwise(times)) if times[1:] else USUAL_S
    base_s = _begin_s(record)
    spans = [*record.spans.values()]
    begin_s = min((span.start_s for span in spans), default=0.0)
    end_s = max((span.end_s for span in spans), default=0.0)
    within = [
        (at_s - base_s, value)
        for at_s, value in series.points
        if begin_s - period_s < at_s - base_s < end_s
    ]
    return CloudMetric(
        metric=series.metric,
        unit=METRICS[series.metric],
        file=str(path),
        points=len(times),
        first=_written(times[0]) if times else None,
        last=_written(times[-1]) if times else None,
        at_s=tuple(at_s for at_s, _ in within),
        values=tuple(value for _, value in within),
    )


def _begin_s(record: RunRecord) -> float:
    """Return when the engine began: its log says so, since the epoch."""
    with suppress(OSError), (record.folder / "histograms.hlog").open(errors="replace") as file:
        for line in islice(file, _HEAD_LINES):
            found = _BASE.match(line)
            if found is not None:
                return float(found[1])
    return datetime.fromisoformat(record.run.began).timestamp()


_HEAD_LINES = 8  # more than an engine writes before its first interval
_BASE = re.compile(r"#\[BaseTime: (\d+\.\d+)")


def _written(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _load_series(path: Path) -> list[_Series]:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ReplayerError(f"{path}: cannot be read: {error.strerror}", hint=_HINT) from error
    if len(content) > MOST_BYTES:
        message = f"{path}: more than {MOST_BYTES:,} bytes"
        raise ReplayerError(message, hint="export the time of the run alone")
    text = content.decode("utf-8-sig", errors="replace")
    is_json = text.lstrip()[:1] in {"{", "["}
    found: dict[str, list[tuple[float, float]]] = {}
    for metric, at_s, value in (_read_json if is_json else _read_csv)(str(path), text):
        found.setdefault(metric, []).append((at_s, value))
    return [_Series(metric, tuple(sorted(points))) for metric, points in found.items()]


_HINT = (
    "an export of CloudWatch: the JSON of 'aws cloudwatch get-metric-statistics' or "
    f"'get-metric-data', or the console's CSV, of {', '.join(METRICS)}"
)

CREDITS_HELP = (
    "lay a cloud's metrics beside the run: CloudWatch's JSON or CSV of BurstCreditBalance, "
    "PercentIOLimit, BurstBalance or CPUCreditBalance; repeatable"
)

_Point = tuple[str, float, float]
"""A metric, the time and the value."""


def _read_json(path: str, text: str) -> Iterator[_Point]:
    try:
        document = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise ReplayerError(f"{path}:{line}: no JSON: {error}", hint=_HINT) from error
    place = _Place(path, text)
    document = document if isinstance(document, dict) else {}
    if "Datapoints" in document:
        yield from _read_statistics(place, document)
    elif "MetricDataResults" in document:
        yield from _read_metric_data(place, document)
    else:
        place.refuse("neither Datapoints nor MetricDataResults", None)


def _read_statistics(place: "_Place", document: Mapping[str, Any]) -> Iterator[_Point]:
    metric = place.metric([document.get("Label")])
    for point in place.items(document["Datapoints"], "Datapoints"):
        statistic = next((each for each in _STATISTICS if each in point), None)
        if statistic is None:
            known = ", ".join(_STATISTICS)
            place.refuse(f"a point has none of {known}", point.get("Timestamp"))
        yield metric, place.time(point.get("Timestamp")), place.value(point[statistic])


def _read_metric_data(place: "_Place", document: Mapping[str, Any]) -> Iterator[_Point]:
    results = [*place.items(document["MetricDataResults"], "MetricDataResults")]
    named = [(place.name([each.get("Label"), each.get("Id")]), each) for each in results]
    if not any(name for name, _ in named):
        place.metric([each.get("Label") for each in results])
    for name, each in named:
        times, values = each.get("Timestamps"), each.get("Values")
        times, values = (own if isinstance(own, list) else [] for own in (times, values))
        if len(times) != len(values):
            place.refuse(f"{len(times)} times, but {len(values)} values", each.get("Label"))
        if name is not None:
            for time, value in zip(times, values, strict=True):
                yield name, place.time(time), place.value(value)


def _read_csv(path: str, text: str) -> Iterator[_Point]:
    header: list[list[str]] = []
    columns: dict[int, str] = {}
    reader = csv.reader(text.splitlines(keepends=True))
    for row in reader:
        place = _Place(path, text, reader.line_num)
        at_s = _parse_time(row[0].strip()) if row else None
        if at_s is None:
            if columns and any(cell.strip() for cell in row):
                place.refuse(f"no time: {row[0]!r}", None)
            header.append(row)
            continue
        columns = columns or _columns(header, place)
        for column, metric in columns.items():
            if column < len(row) and row[column].strip():
                yield metric, at_s, place.value(row[column].strip())
    if not columns:
        place = _Place(path, text)
        _columns(header, place)
        place.refuse("no row begins with a time", None)


def _columns(header: Sequence[Sequence[str]], place: "_Place") -> dict[int, str]:
    """Return which column has which metric, as the rows above say."""
    cells = [(column, cell) for row in header for column, cell in enumerate(row) if column]
    named = ((column, place.name([cell])) for column, cell in cells)
    found = {column: name for column, name in named if name is not None}
    if not found:
        place.metric([cell for _, cell in cells])
    return found


@dataclass(frozen=True)
class _Place:
    """Where in a file something is read."""

    path: str
    text: str
    line: int | None = None
    """None: where the text of what is refused stands."""

    def refuse(self, problem: str, what: object) -> NoReturn:
        """Refuse what stands there."""
        line = self.line
        if line is None:
            at = -1 if what is None else self.text.find(json.dumps(what))
            line = self.text.count("\n", 0, max(at, 0)) + 1
        raise ReplayerError(f"{self.path}:{line}: {problem}", hint=_HINT)

    def items(self, found: object, name: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list."""
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.refuse(f"{name} is no list of objects", None)
        yield from found

    def name(self, labels: Sequence[object]) -> str | None:
        """Return the metric that a label names."""
        texts = [str(label).lower() for label in labels if label is not None]
        return next((name for name in METRICS for text in texts if name.lower() in text), None)

    def metric(self, labels: Sequence[object]) -> str:
        """Return the metric that a label names, or refuse."""
        found = self.name(labels)
        if found is None:
            named = ", ".join(dict.fromkeys(str(label) for label in labels if label)) or "nothing"
            self.refuse(f"no metric of credits: it has {named[:_MOST_NAMED]}", None)
        return found

    def time(self, found: object) -> float:
        """Return a time since the epoch."""
        at_s = _parse_time(found)
        if at_s is None:
            self.refuse(f"no time: {found!r}", found)
        return at_s

    def value(self, found: object) -> float:
        """Return a value: a finite number that is not negative."""
        try:
            value = float(found) if isinstance(found, (str, int, float)) else -1.0
        except ValueError:
            value = -1.0
        if not isfinite(value) or value < 0:
            self.refuse(f"no value: {found!r}", found)
        return value


_MOST_NAMED = 120  # characters: chosen


def _parse_time(found: object) -> float | None:
    """Return a time since the epoch: of ISO 8601, with slashes, or in seconds; UTC if unsaid."""
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return float(found) if isfinite(found) else None
    try:
        at = datetime.fromisoformat(str(found).replace("/", "-"))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
