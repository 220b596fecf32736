"""What Locust's statistics say of the engine's transactions: times as in reports, and rates."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from locust import html, stats
from locust.env import Environment

from replayer._native import Histogram, Interval, Row
from replayer.locust.patches import correct_figures, round_figure, show_digits
from replayer.locust.stats_bridge import LocustStats
from replayer.measure.summary import samples_needed

S = 1_000_000_000
EPOCH_NS = 1_700_000_000 * S
Rows = dict[str, str]


REPLACED = (
    (stats, "bucket_response_time"),
    (stats, "calculate_response_time_percentile"),
    (stats.StatsEntry, "get_current_response_time_percentile"),
    (stats.StatsEntry, "percentile"),
    (stats.StatsEntry, "to_dict"),
    (stats.StatsCSV, "_percentile_fields"),
    (stats.StatsCSV, "_requests_data_rows"),
    (html, "render_template_from"),
)


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        for place, name in REPLACED:
            patches.setattr(place, name, getattr(place, name))
        correct_figures()
        yield


def interval(
    start_s: float,
    end_s: float,
    times_ns: list[int],
    place: tuple[int, int] = (0, 0),
    phase: Literal["warm-up", "measured"] = "measured",
) -> Interval:
    """Return an interval in which transactions of a target and round ended."""
    rows = (row(times_ns, place, phase),) if times_ns else ()
    return Interval(int(start_s * S), int(end_s * S), 1, rows)


def row(
    times_ns: list[int],
    place: tuple[int, int] = (0, 0),
    phase: Literal["warm-up", "measured"] = "measured",
    outcome: Literal["ok", "failed"] = "ok",
) -> Row:
    found = Histogram()
    for time_ns in times_ns:
        found.record(time_ns)
    return Row(*place, phase, "look", "transaction", outcome, outcome == "ok", 0, found)


def told(*intervals: Interval, targets: tuple[str, ...] = ("near",)) -> Environment:
    environment = Environment()
    bridge = LocustStats(environment, EPOCH_NS, targets)
    for each in intervals:
        bridge.merge(each)
    return environment


def rows_of(environment: Environment) -> dict[str, Rows]:
    text = io.StringIO()
    stats.StatsCSV(environment, stats.PERCENTILES_TO_REPORT).requests_csv(csv.writer(text))
    return {row["Name"]: row for row in csv.DictReader(io.StringIO(text.getvalue()))}


def test_the_csv_has_times_below_a_millisecond() -> None:
    row = rows_of(told(interval(0, 1, [20_000] * 40 + [41_000] * 59 + [2_345_000])))["look"]
    assert float(row["Median Response Time"]) == pytest.approx(0.041, rel=0.01)
    assert float(row["50%"]) == pytest.approx(0.041, rel=0.01)
    assert float(row["100%"]) == pytest.approx(2.345, rel=0.01)
    assert float(row["Min Response Time"]) == pytest.approx(0.02, rel=0.01)


def test_rates_are_over_measured_time_to_its_end() -> None:
    row = rows_of(
        told(
            interval(0, 5, [1000] * 700, phase="warm-up"),
            interval(5, 6, [1000] * 100),
            interval(6, 6.5, [1000] * 50),
        )
    )
    assert float(row["look"]["Requests/s"]) == pytest.approx(100)
    assert float(row["Aggregated"]["Requests/s"]) == pytest.approx(100)


def test_the_rates_of_targets_in_turn_are_those_of_their_own_turns() -> None:
    rounds = [
        turn
        for number, begin in enumerate((0, 10))
        for turn in (
            interval(begin, begin + 1, [1000] * 100, (0, number)),
            interval(begin + 5, begin + 6, [1000] * 300, (1, number)),
        )
    ]
    environment = told(*rounds, targets=("near", "far"))
    rows = rows_of(environment)
    assert {name: float(row["Requests/s"]) for name, row in rows.items()} == {
        "near/look": pytest.approx(100),
        "far/look": pytest.approx(300),
        "Aggregated": pytest.approx(200),
    }
    current = {entry.name: entry.current_rps for entry in environment.stats.entries.values()}
    assert current == {"near/look": pytest.approx(100), "far/look": pytest.approx(300)}


def test_time_in_which_nothing_ended_counts_for_the_turn_that_goes_on_and_no_other() -> None:
    environment = told(
        interval(0, 1, [1000] * 100, (0, 0)),
        interval(1, 2, []),
        interval(5, 6, []),  # another turn, as there is a gap
        interval(6, 7, [1000] * 100, (1, 0)),
        targets=("near", "far"),
    )
    rows = rows_of(environment)
    assert float(rows["near/look"]["Requests/s"]) == pytest.approx(50)
    assert environment.stats.entries["near/look", "FILE"].current_rps == pytest.approx(50)


def test_what_locust_counts_itself_stays_in_the_sum() -> None:
    environment = Environment()
    environment.stats.log_request("GET", "/", 12, 100)
    LocustStats(environment, EPOCH_NS, ("near",)).merge(interval(0, 1, [1000] * 9))
    assert rows_of(environment)["Aggregated"]["Request Count"] == "10"


def test_the_rate_of_all_is_the_sum_of_what_the_engine_and_locust_count() -> None:
    environment = Environment()
    for _ in range(40):
        environment.stats.log_request("GET", "/", 12, 100)
    environment.stats.total.start_time -= 20
    bridge = LocustStats(environment, EPOCH_NS, ("near",))
    bridge.merge(interval(0, 2, [1000] * 200))
    environment.stats.total.last_request_timestamp = environment.stats.start_time + 20
    rates = {name: float(row["Requests/s"]) for name, row in rows_of(environment).items()}
    assert rates["look"] == pytest.approx(100)
    assert rates["/"] > 0
    assert rates["Aggregated"] == pytest.approx(rates["look"] + rates["/"])


def test_rates_after_a_reset_are_over_what_is_measured_since() -> None:
    environment = Environment()
    bridge = LocustStats(environment, EPOCH_NS, ("near",))
    bridge.merge(interval(0, 4, [1000] * 100))
    environment.stats.reset_all()
    bridge.merge(interval(4, 5, [1000] * 100))
    rates = [float(row["Requests/s"]) for row in rows_of(environment).values()]
    assert rates == [pytest.approx(100)] * 2


def report_of(environment: Environment) -> dict[str, Any]:
    """Return the figures in Locust's HTML report."""
    runner = environment.create_local_runner()
    try:
        stats.update_stats_history(runner)
        page = html.get_html_report(environment)
    finally:
        runner.greenlet.kill()
    found = re.search(r"window.templateArgs = (\{.*)", page)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


@pytest.mark.parametrize(
    ("samples", "known"), [(1, "50 100"), (19, "50 90 100"), (20, "50 90 95 100")]
)
def test_a_percentile_that_too_few_samples_support_is_in_none_of_locusts_forms(
    samples: int, known: str
) -> None:
    environment = told(interval(0, 1, [1_840_000] * samples))
    row = rows_of(environment)["look"]
    shown = {name for name in ("50%", "90%", "95%", "99%", "99.9%", "100%") if row[name] != "N/A"}
    assert shown == {f"{percent}%" for percent in known.split()}
    for entry in (environment.stats.entries["look", "FILE"], environment.stats.total):
        figures: dict[str, Any] = entry.to_dict()
        assert figures["response_time_percentile_0.99"] is None
        assert (figures["response_time_percentile_0.95"] is None) is (samples < 20)
    told_there = report_of(environment)
    for row in told_there["response_time_statistics"]:
        assert {
            float(share) * 100 for share in ("0.5", "0.9", "0.95", "0.99", "1.0") if row[share]
        } == {float(percent) for percent in known.split()}
    for point in told_there["history"]:
        assert point["response_time_percentile_0.95"][1] == "-" or samples >= 20


def test_locusts_report_has_the_digits_of_times_below_a_millisecond() -> None:
    environment = told(interval(0, 1, [1_840_000, 4_100, 4_100]))
    for row in report_of(environment)["requests_statistics"]:
        assert row["min_response_time"] == pytest.approx(0.0041, rel=0.001)
        assert row["median_response_time"] == pytest.approx(0.0041, rel=0.001)
        assert row["max_response_time"] == pytest.approx(1.84, rel=0.001)
        assert row["avg_response_time"] == pytest.approx(1.8482 / 3, rel=0.001)


def test_no_column_of_times_in_locusts_scripts_is_rounded() -> None:
    pages = Path(html.DEFAULT_BUILD_PATH)
    (script,) = pages.glob("assets/*.js")
    for file in (script, pages / "report.html"):
        text = file.read_text(encoding="utf-8")
        columns = re.findall(r"\{key:[^}]*ResponseTime[^}]*\}", text)
        assert any("round" in column for column in columns)
        columns = re.findall(r"\{key:[^}]*ResponseTime[^}]*\}", show_digits(text))
        assert columns
        assert not any("round" in column for column in columns)


@given(st.lists(st.integers(1, 10**11), min_size=1, max_size=150))
def test_locusts_percentiles_are_those_of_reports(times_ns: list[int]) -> None:
    entry = told(interval(0, 1, times_ns)).stats.entries["look", "FILE"]
    known = row(times_ns).histogram
    for percent in (50, 95, 99, 100):
        found = entry.get_response_time_percentile(percent / 100)
        if len(times_ns) < samples_needed(percent):
            assert found is None
        else:
            assert found == round_figure(known.percentile(percent) / 1e6)
    figures = cast("dict[str, float]", entry.to_dict())
    low, middle, high = (figures[f"{name}_response_time"] for name in ("min", "median", "max"))
    assert low <= middle <= high


def test_locusts_times_are_those_of_what_succeeded_as_in_reports() -> None:
    rows = (row([1_000_000] * 4), row([91_030_000], outcome="failed"))
    environment = told(Interval(0, S, 1, rows))
    found = rows_of(environment)["look"]
    assert (found["Request Count"], found["Failure Count"]) == ("5", "1")
    assert float(found["Max Response Time"]) == pytest.approx(1, rel=0.001)
    assert float(found["Average Response Time"]) == pytest.approx(1, rel=0.001)
    failing = told(Interval(0, S, 1, (row([91_030_000], outcome="failed"),)))
    found = rows_of(failing)["look"]
    names = ("Median", "Average", "Min", "Max")
    assert {found[f"{name} Response Time"] for name in names} == {"N/A"}
    assert failing.stats.total.to_dict()["max_response_time"] is None


def test_the_table_that_locust_prints_leaves_out_what_is_not_supported() -> None:
    lines = stats.get_percentile_stats_summary(told(interval(0, 1, [41_000] * 3)).stats)
    (line,) = [line for line in lines if " look " in line]
    times = line.split()[2:-1]
    assert times[2:-1] == ["N/A"] * 8
    assert [float(time) for time in (*times[:2], times[-1])] == pytest.approx(
        [0.041] * 3, rel=0.001
    )
