"""Exports of a cloud's metrics, written by hand in the shapes that its tools have.

JSON: the examples of 'get-metric-statistics' and 'get-metric-data' in the AWS CLI Command
Reference. CSV: the console's is not specified; these have what any of them must have.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.measure.credits import check_credits, with_credits
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import CloudMetric
from replayer.report.composition import compose
from replayer.report.description import describe_run
from replayer.report.first_screen import render_first_screen
from replayer.report.html import render_html
from replayer.report.json_form import render_json
from tests.unit.runs import RunWriter, make_run

BEGIN_S = 1_790_000_000
"""When the engine of these runs began, as their log says."""
SECONDS = 200


def at(second: float) -> str:
    return datetime.fromtimestamp(BEGIN_S + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def statistics(points: Sequence[tuple[float, float]], label: str = "BurstCreditBalance") -> str:
    """As get-metric-statistics prints them: in no order."""
    found = [{"Timestamp": at(when), "Average": value, "Unit": "Bytes"} for when, value in points]
    return json.dumps({"Datapoints": found[::-1], "Label": label}, indent=4)


def metric_data(points: Sequence[tuple[float, float]]) -> str:
    """As get-metric-data prints them: the latest first, with offsets."""
    times = [at(when).replace("Z", "+00:00") for when, _ in points]
    result = {
        "Id": "m1",
        "Label": "fs-0123 PercentIOLimit",
        "Timestamps": times[::-1],
        "Values": [value for _, value in points][::-1],
        "StatusCode": "Complete",
    }
    return json.dumps({"MetricDataResults": [result], "Messages": []}, indent=4)


def console(points: Sequence[tuple[float, float]]) -> str:
    """Facts of each series above, times with slashes."""
    rows = [
        f"{at(when).replace('-', '/').replace('T', ' ')[:-1]},{value}" for when, value in points
    ]
    return "\n".join(["Full label,BurstCreditBalance", "Id,m1", "Region,eu-west-1", "", *rows, ""])


POINTS = [(-600.0, 9e12), (-30.0, 3e12), (30.0, 2.5e12), (90.0, 2e12), (150.0, 1e12), (400.0, 5e11)]


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    writer = RunWriter(tmp_path / "run")
    for second in range(SECONDS):
        writer.transaction("page", [10**6] * 20, "0/0", (second, second + 1))
    return load_run(writer.write(make_run()))


def found_in(record: RunRecord, text: str) -> CloudMetric:
    path = record.folder.parent / "export"
    path.write_text(text)
    (found,) = with_credits(record, [path]).run.credits
    return found


@pytest.mark.parametrize("shape", [statistics, console])
def test_the_points_of_a_run_are_those_whose_minute_is_in_it(
    record: RunRecord, shape: Callable[[Sequence[tuple[float, float]]], str]
) -> None:
    found = found_in(record, shape(POINTS))
    assert (found.metric, found.unit, found.points) == ("BurstCreditBalance", "bytes", 6)
    assert (found.first, found.last) == (at(-600), at(400))
    assert found.at_s == (-30.0, 30.0, 90.0, 150.0)
    assert found.values == (3e12, 2.5e12, 2e12, 1e12)


def test_metric_data_has_its_label_with_other_words(record: RunRecord) -> None:
    found = found_in(record, metric_data([(10, 40.0), (70, 99.5)]))
    assert (found.metric, found.unit) == ("PercentIOLimit", "percent")
    assert (found.at_s, found.values) == ((10.0, 70.0), (40.0, 99.5))


def test_a_table_has_several_metrics_and_gaps(record: RunRecord) -> None:
    path = record.folder.parent / "export.csv"
    path.write_text(
        "Timestamp,fs BurstCreditBalance,ClientConnections,PercentIOLimit\n"
        f"{at(10)},1000,3,\n{at(70)},900,3,12.5\n"
    )
    first, second = with_credits(record, [path]).run.credits
    assert (first.metric, first.values) == ("BurstCreditBalance", (1000.0, 900.0))
    assert (second.metric, second.at_s, second.values) == ("PercentIOLimit", (70.0,), (12.5,))


def test_every_report_has_them(record: RunRecord) -> None:
    path = record.folder.parent / "export"
    path.write_text(statistics(POINTS))
    beside = with_credits(record, [path])
    document = compose(beside)
    told = (
        "BurstCreditBalance: 3.00 TB at its begin, 1.00 TB at its end, 1.00 TB to 3.00 TB within "
        f"it (4 of the 6 points of {path})"
    )
    assert ("credits", told) in list(describe_run(document))
    assert "  credits     BurstCreditBalance: 3.00 TB" in render_first_screen(document)
    (printed,) = json.loads(render_json(document))["credits"]
    assert printed["values"] == [3e12, 2.5e12, 2e12, 1e12]
    page = render_html([beside])
    assert "BurstCreditBalance over time" in page
    assert "2.50 TB" in page
    assert "BurstCreditBalance" not in render_html([record])


def test_an_export_of_another_time_is_told(record: RunRecord) -> None:
    path = record.folder.parent / "export"
    path.write_text(statistics([(-7200, 1.0), (-7140, 1.0)]))
    screen = render_first_screen(compose(with_credits(record, [path])))
    assert "BurstCreditBalance: none of the 2 points of" in screen
    assert f"{at(-7200)} to {at(-7140)}" in " ".join(screen.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: no metric of credits: it has nothing"),
        ("\n\nT,BurstCreditBalance\n", ":1: no row begins with a time"),
        ("Timestamp,CPU\n2026-01-01,5\n", ":2: no metric of credits: it has CPU"),
        ("T,BurstBalance\n2026-01-01,5\nno,6\n", ":3: no time: 'no'"),
        ("T,BurstBalance\n2026-01-01,x\n", ":2: no value: 'x'"),
        ("T,BurstBalance\n2026-01-01,-1\n", ":2: no value: '-1'"),
        ("T,BurstBalance\n2026-01-01,nan\n", ":2: no value: 'nan'"),
        ('{\n"Datapoints": [,\n', ":2: no JSON: "),
        ("[]", ":1: neither Datapoints nor MetricDataResults"),
        ('{"Datapoints": 3, "Label": "BurstBalance"}', ":1: Datapoints is no list of objects"),
        ('{"Datapoints": [], "Label": "CPU"}', ":1: no metric of credits: it has CPU"),
        (
            '{"Label": "BurstBalance",\n"Datapoints": [{"Average": 3,\n"Timestamp": "no"}]}',
            ":3: no time: 'no'",
        ),
        (
            '{"MetricDataResults": [\n{"Label": "BurstBalance", "Timestamps": ["2026-01-01"]}]}',
            ":2: 1 times, but 0 values",
        ),
        ('{"MetricDataResults": []}', ":1: no metric of credits: it has nothing"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "export"
    path.write_text(text)
    with pytest.raises(ReplayerError) as refusal:
        check_credits([path])
    assert str(refusal.value).startswith(f"{path}{told}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayerError, match="cannot be read: No such file"):
        check_credits([tmp_path / "none"])
