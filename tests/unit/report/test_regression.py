"""A run held against a kept one: slower, as fast, or not to be told, from simulated samples."""

import json
import random
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.measure.neighbour import Neighbour
from replayer.measure.record import RunRecord, load_run
from replayer.measure.summarise import summarise
from replayer.report.regression import KeptRun, check_kept_run, judged_against
from replayer.verdict.judgement import Verdict, judge
from tests.unit.runs import RunWriter, make_health, make_run, make_target

SECONDS = 8
SAMPLES = 40


def write_run(
    path: Path,
    times: float = 1.0,
    noise: float = 0.02,
    seed: int = 0,
    rounds: int = 3,
    **run: object,
) -> Path:
    """Write a run whose medians differ by some noise from round to round."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    writer = RunWriter(path)
    for number in range(rounds):
        factor = times * generator.lognormvariate(0, noise)
        for second in range(SECONDS):
            begin = float(number * SECONDS + second)
            samples = [int(1e6 * factor * generator.lognormvariate(0, 0.1)) for _ in range(SAMPLES)]
            writer.transaction("save", samples, f"0/{number}", (begin, begin + 1))
            writer.call("save", f"0/{number}", (begin, begin + 1))
    writer.write(make_run(targets=(make_target(0, "disk"),), **run))
    (path / "plan.json").write_text(json.dumps({"name": "pages"}))
    return path


def verdict_of(path: Path, kept: Path, tolerance: float = 0.1) -> tuple[RunRecord, Verdict]:
    record = judged_against(load_run(path), KeptRun("v1", kept, tolerance))
    return record, judge(record, summarise(record))


@pytest.mark.parametrize(
    ("times", "tolerance", "outcome", "code"),
    [
        (1.0, 0.15, "pass", 0),
        (0.7, 0.1, "pass", 0),
        (1.4, 0.1, "fail", 1),
        (1.4, 0.6, "pass", 0),
        (1.1, 0.1, "inconclusive", 4),
    ],
)
def test_a_run_is_judged_by_the_interval_of_its_ratio(
    tmp_path: Path, times: float, tolerance: float, outcome: str, code: int
) -> None:
    kept = write_run(tmp_path / "kept", seed=1)
    after = write_run(tmp_path / "after", times, seed=2)
    record, verdict = verdict_of(after, kept, tolerance)
    assert (verdict.outcome, verdict.exit_code) == (outcome, code)
    assert record.run.baseline is not None
    median, slow = record.run.baseline.figures
    assert (median.figure, slow.figure) == ("p50", "p95")
    assert median.ratio == pytest.approx(times, rel=0.06)
    assert (median.low or 9) < (median.ratio or 0) < (median.high or 0)
    assert (median.low or 9) < times < (median.high or 0)
    said = next(each for each in verdict.judgements if each.source.startswith("--baseline"))
    assert said.threshold == f"save.p50 <= {1 + tolerance:.0%} of v1"
    assert " times (" in said.says


def test_equal_runs_seldom_fail_and_slow_ones_seldom_pass(tmp_path: Path) -> None:
    """Of 25 pairs each: rounds differ by 3 %, the tolerance is 10 %."""
    outcomes = {}
    for times in (1.0, 1.4):
        found = []
        for seed in range(25):
            kept = write_run(tmp_path / f"{times}-{seed}-kept", noise=0.03, seed=2 * seed)
            after = write_run(tmp_path / f"{times}-{seed}", times, noise=0.03, seed=2 * seed + 1)
            found.append(verdict_of(after, kept)[1].outcome)
        outcomes[times] = found
    assert outcomes[1.0].count("fail") == 0
    assert outcomes[1.4].count("pass") == 0
    assert outcomes[1.4].count("fail") >= 18


def test_few_rounds_widen_the_interval(tmp_path: Path) -> None:
    kept, after = (write_run(tmp_path / name, rounds=1, seed=3) for name in ("kept", "after"))
    record, verdict = verdict_of(after, kept)
    assert record.run.baseline is not None
    figure = record.run.baseline.figures[0]
    assert figure.low is not None
    assert figure.high is not None
    assert figure.high / figure.low > 1.5
    assert verdict.outcome == "inconclusive"


def test_a_kept_run_of_other_work_is_refused_at_once(tmp_path: Path) -> None:
    kept = write_run(tmp_path / "kept")
    check_kept_run(KeptRun("v1", kept), {"name": "pages", "stop": {"duration_ns": 5}}, ("disk",))
    with pytest.raises(ReplayerError, match="ran pages with other work"):
        check_kept_run(KeptRun("v1", kept), {"name": "pages", "users": 9}, ("disk",))


def test_a_kept_run_beside_another_neighbour_is_refused(tmp_path: Path) -> None:
    plan, kept = {"name": "pages"}, write_run(tmp_path / "kept")
    with pytest.raises(ReplayerError, match="kept had no neighbour beside it, not uploads at 20"):
        check_kept_run(KeptRun("v1", kept), plan, ("disk",), "uploads at 20/s")
    neighbour = Neighbour(name="uploads", scenario="uploads", rate_per_s=5.0, pairs=())
    run = load_run(kept).run.model_copy(update={"neighbour": neighbour})
    (kept / "run.json").write_text(run.model_dump_json())
    check_kept_run(KeptRun("v1", kept), plan, ("disk",), "uploads at 5/s")
    with pytest.raises(ReplayerError, match="kept had uploads at 5/s beside it, not no neighbour"):
        check_kept_run(KeptRun("v1", kept), plan, ("disk",))


def test_targets_of_other_names_are_refused_where_there_are_several(tmp_path: Path) -> None:
    kept = write_run(tmp_path / "kept")
    check_kept_run(KeptRun("v1", kept), {"name": "pages"}, ("nfs",))
    with pytest.raises(ReplayerError, match=r"no target of kept \(disk\) is one of this run"):
        check_kept_run(KeptRun("v1", kept), {"name": "pages"}, ("nfs", "zfs"))


def test_a_kept_run_that_proves_nothing_is_refused(tmp_path: Path) -> None:
    kept = write_run(tmp_path / "kept", health=make_health(run_queue_delay_ns=500))
    with pytest.raises(ReplayerError, match="kept is inconclusive: the client was saturated"):
        check_kept_run(KeptRun("v1", kept), {"name": "pages"}, ("disk",))
