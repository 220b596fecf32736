"""The race: how targets stand beside each other while a run goes on."""

from pathlib import Path

import pytest

from replayer._native import Histogram, Interval, Row
from replayer.errors import ReplayerError
from replayer.web.op_totals import OpTotals
from replayer.web.race import MOST_LOOKS, Look, Race, describe_lanes, describe_looks, explain_moment
from replayer.web.series import RunSeries
from tests.unit.runs import RunWriter, make_run, make_target

MS = 10**6


def write(folder: Path, rounds: int) -> Path:
    """Rounds of two targets, of which the second takes twice as long."""
    writer = RunWriter(folder)
    for number in range(rounds):
        for target in range(2):
            at = 20.0 * number + 10 * target
            for second in range(10):
                times = [MS * (target + 1) + 1000 * place for place in range(60)]
                writer.transaction(
                    "view", times, f"{target}/{number}", (at + second, at + second + 1)
                )
    return writer.write(make_run(targets=(make_target(0, "near"), make_target(1, "far"))))


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> Race:
    monkeypatch.setattr("replayer.web.race.call_in_thread", lambda call, *words: call(*words))
    return Race()


def test_what_differs_is_read_from_the_run_folder(race: Race, tmp_path: Path) -> None:
    race.look(write(tmp_path, 4), is_over=False)
    found = describe_looks(race)
    assert found["rounds"][0] == 4
    figures = {each["figure"]: each for each in found["figures"]}
    best, other = figures["p50"]["standings"]
    assert (best["target"], best["claim"]) == ("near", "best")
    assert (other["target"], other["claim"]) == ("far", "differs")
    assert other["ratio"] == pytest.approx(2, rel=0.05)
    ((at_s, low, high),) = other["before"]
    assert at_s >= 0
    assert 1 < low <= other["ratio"] <= high


def test_it_rests_fifty_times_as_long_as_a_look_takes(
    race: Race, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, taken = [1000.0], []

    def look(folder: Path, at_s: float) -> Look:
        now_s[0] += 2
        taken.append((folder, at_s))
        return Look(at_s, (), (), (), (1, 1))

    monkeypatch.setattr("replayer.web.race.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("replayer.web.race._look", look)
    for _ in range(205):  # of which two are looks, and each takes two seconds
        race.look(tmp_path, is_over=False)
        now_s[0] += 1
    assert len(taken) == 3
    for _ in range(5):  # the last look shows the end, and is the last one
        race.look(tmp_path, is_over=True)
    assert (len(taken), race.is_over) == (4, True)


def test_one_target_has_figures_of_its_own(race: Race, tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("view", [MS] * 40)
    writer.transaction("rare", [9 * MS] * 3)
    race.look(writer.write(make_run()), is_over=True)
    found = describe_looks(race)
    assert found["figures"] == []
    assert found["own"][0]["transaction"] == "view"
    assert found["own"][0]["p95_ns"] == pytest.approx(MS, rel=0.01)


def test_a_run_that_cannot_be_read_yet_has_no_look(race: Race, tmp_path: Path) -> None:
    race.look(tmp_path / "none", is_over=False)
    assert describe_looks(race) == {
        "mounts": [],
        "rounds": None,
        "own": [],
        "figures": [],
    }


def test_of_many_looks_every_other_one_is_kept_and_the_last(race: Race, tmp_path: Path) -> None:
    folder = write(tmp_path, 2)
    race.look(folder, is_over=False)
    race.looks = race.looks * MOST_LOOKS
    race.look(folder, is_over=True)
    assert len(race.looks) == MOST_LOOKS // 2 + 1


def interval(target: int) -> Interval:
    """A second in which 40 transactions ended, and one call failed."""
    times, failed = Histogram(), Histogram()
    for _ in range(40):
        times.record(MS * (target + 1))
    failed.record(MS)
    rows = [
        Row(target, 0, "measured", "view", "transaction", "ok", True, 0, times),  # noqa: FBT003
        Row(target, 0, "measured", "view", "read", "EIO", False, 0, failed),  # noqa: FBT003
    ]
    return Interval(target * 10**9, (target + 1) * 10**9, 1, rows)


def test_each_lane_has_the_seconds_of_its_target_alone() -> None:
    series, totals = RunSeries(), OpTotals()
    for target in (0, 1):
        totals.add(interval(target))
        series.add(interval(target), 0, totals.active)
    found = describe_lanes(series, totals, 2, -1)
    near, far = found["lanes"]
    assert (near["turn"], far["turn"]) == ([True, False], [False, True])
    assert near["p50"][0] == pytest.approx(MS, rel=0.01)
    assert (near["p50"][1], far["p50"][0]) == (None, None)
    assert (near["errors"], far["errors"]) == ([1, 0], [0, 1])
    again = describe_lanes(series, totals, 2, found["last"])
    assert (again["end"], again["last"]) == ([], found["last"])


def test_all_lanes_have_the_transaction_that_ended_most_often() -> None:
    series, totals = RunSeries(), OpTotals()
    for target, name, count in ((0, "view", 30), (0, "save", 29), (1, "save", 40), (1, "view", 1)):
        times = Histogram()
        for _ in range(count):
            times.record(MS)
        row = Row(target, 0, "measured", name, "transaction", "ok", True, 0, times)  # noqa: FBT003
        totals.add(Interval(0, 10**9, 1, [row]))
        series.add(Interval(0, 10**9, 1, [row]), 0, totals.active)
    assert describe_lanes(series, totals, 2, -1)["transaction"] == "save"


def test_a_moment_of_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayerError):
        explain_moment(tmp_path / "none", 0, 0, 1)
