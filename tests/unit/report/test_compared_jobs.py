"""Jobs of fio that took turns, compared."""

from pathlib import Path

import numpy as np
import pytest

from replayer.analysis.resampling import Draw, resample
from replayer.analysis.slots import read_distributions
from replayer.measure.record import RunRecord
from replayer.report.comparing import compare
from replayer.report.composition import compose
from tests.unit.report.contenders import load
from tests.unit.runs import RunWriter, make_load, make_run, make_target


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Two jobs of fio in turns on two targets; the second target is ten times as slow."""
    folder = tmp_path_factory.mktemp("jobs") / "run"
    writer, begin = RunWriter(folder), 0
    for number in range(3):
        for job, calls in (("sync", 100), ("buffered", 400)):
            for target, slower in enumerate((1, 10)):
                for second in range(begin, begin + 4):
                    random = np.random.default_rng([number, second])
                    times = 1e6 * slower * random.lognormal(sigma=0.3, size=calls // slower)
                    spent = [int(time) for time in times]
                    span, place = (second, second + 1), f"{target}/{number}"
                    writer.transaction(job, spent, place, span)
                    writer.record(f"{place}/measured/{job}/write/ok/expected", spent, span)
                begin += 5
    targets = (make_target(0, "fast"), make_target(1, "slow"))
    load_facts = make_load(rounds=3, order="in turn")
    return load(writer.write(make_run(targets=targets, load=load_facts, id="jobs")))


def test_a_job_that_took_turns_has_the_rate_of_its_own_time(jobs: RunRecord) -> None:
    for item in compare([jobs]).compared:
        best, other = item.standings
        if item.figure == "throughput":
            assert best.value == {"sync": 100, "buffered": 400}[item.subject]
            assert (other.label, other.claim) == ("slow", "differs")
            assert other.ratio_low is not None
            assert other.ratio_low > 0.05


def test_resampling_knows_the_own_time_of_jobs_and_loses_none_of_their_calls(
    jobs: RunRecord,
) -> None:
    found = read_distributions(jobs)
    for target, slower in ((0, 1), (1, 10)):
        for job, calls in (("sync", 100), ("buffered", 400)):
            own = found[target, "transaction", job]
            assert own.own_s.sum() == pytest.approx(12)
            assert own.table.sum() == 12 * (calls // slower)
            assert resample(own, [None], Draw(0)).plain[0] == pytest.approx(calls / slower)


def test_a_job_whose_time_was_lost_when_its_run_was_killed_is_reported(tmp_path: Path) -> None:
    """The log of fio is written before the timeline: a run may be killed between the two."""
    writer = RunWriter(tmp_path / "run")
    for job, target, begin in (("first", 0, 0), ("first", 1, 5), ("next", 0, 10), ("next", 1, 15)):
        for second in range(begin, begin + 4):
            writer.transaction(job, [10**6] * 30, f"{target}/0", (second, second + 1))
    writer.rows = [row for row in writer.rows if not ("next" in row and row.startswith("1"))]
    targets = (make_target(0, "here"), make_target(1, "there"))
    facts = make_run(targets=targets, load=make_load(order="in turn"), status="running")
    record = load(writer.write(facts))
    ranking = compose(record).ranking
    claims = {(item.subject, item.figure): item.standings[1].claim for item in ranking}
    assert claims["first", "p50"] == "no difference shown"
    assert claims["next", "p50"] == "too few seconds"
    assert compare([record]).compared


def test_jobs_that_took_turns_have_no_figures_together(jobs: RunRecord) -> None:
    comparison = compare([jobs])
    assert {item.kind for item in comparison.compared} == {"transaction"}
    assert [text.split(" takes ")[0] for text in comparison.headline] == [
        "buffered: use fast: buffered",
        "sync: use fast: sync",
    ]
