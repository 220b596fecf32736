"""What Locust's statistics say of the engine's transactions: digits, and rates of measured time."""

import csv
import io
from collections.abc import Iterator
from typing import Literal

import pytest
from locust import stats
from locust.env import Environment

from replayer.engine import Histogram
from replayer.load.locust_figures import correct_figures
from replayer.load.locust_statistics import Statistics
from replayer.load.measured import MadeInterval, MadeRow

S = 1_000_000_000
EPOCH_NS = 1_700_000_000 * S
Rows = dict[str, str]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(stats, "bucket_response_time", stats.bucket_response_time)
        patches.setattr(stats.StatsCSV, "_percentile_fields", stats.StatsCSV._percentile_fields)  # noqa: SLF001
        correct_figures()
        yield


def interval(
    start_s: float,
    end_s: float,
    times_ns: list[int],
    place: tuple[int, int] = (0, 0),
    phase: Literal["warm-up", "measured"] = "measured",
) -> MadeInterval:
    """Return an interval in which transactions of a target and round ended."""
    found = Histogram()
    for time_ns in times_ns:
        found.record(time_ns)
    row = MadeRow(*place, phase, "look", "transaction", "ok", True, 0, found)  # noqa: FBT003
    rows = (row,) if times_ns else ()
    return MadeInterval(int(start_s * S), int(end_s * S), 1, rows)


def told(*intervals: MadeInterval, targets: tuple[str, ...] = ("near",)) -> Environment:
    environment = Environment()
    bridge = Statistics(environment, EPOCH_NS, targets)
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
    Statistics(environment, EPOCH_NS, ("near",)).merge(interval(0, 1, [1000] * 9))
    assert rows_of(environment)["Aggregated"]["Request Count"] == "10"


def test_the_rate_of_all_is_the_sum_of_what_the_engine_and_locust_count() -> None:
    environment = Environment()
    for _ in range(40):
        environment.stats.log_request("GET", "/", 12, 100)
    environment.stats.total.start_time -= 20
    bridge = Statistics(environment, EPOCH_NS, ("near",))
    bridge.merge(interval(0, 2, [1000] * 200))
    environment.stats.total.last_request_timestamp = environment.stats.start_time + 20
    rates = {name: float(row["Requests/s"]) for name, row in rows_of(environment).items()}
    assert rates["look"] == pytest.approx(100)
    assert rates["/"] > 0
    assert rates["Aggregated"] == pytest.approx(rates["look"] + rates["/"])


def test_rates_after_a_reset_are_over_what_is_measured_since() -> None:
    environment = Environment()
    bridge = Statistics(environment, EPOCH_NS, ("near",))
    bridge.merge(interval(0, 4, [1000] * 100))
    environment.stats.reset_all()
    bridge.merge(interval(4, 5, [1000] * 100))
    rates = [float(row["Requests/s"]) for row in rows_of(environment).values()]
    assert rates == [pytest.approx(100)] * 2
