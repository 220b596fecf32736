"""What is found in whole run folders whose truth is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replayer._native import Histogram
from replayer.analysis.works import find_split
from replayer.report.findings import acknowledgements, sentences
from tests.unit.analysis.found import found_in, noisy
from tests.unit.runs import RunWriter, encode, make_load, make_target

NFS: dict[str, Any] = {"filesystem": "nfs4", "super_options": ("rw", "vers=4.1")}


def write_stream(path: Path) -> RunWriter:
    """Study E as it would be recorded: 1 GB each time, 9.8 s, and 4,019 s from the 327th on."""
    writer, begin = RunWriter(path), 0.0
    for number, time in enumerate([*noisy(327, 9.8e9, 326), 4_019_000_000_000]):
        begin += time / 1e9
        span = (begin - min(time / 1e9, 1.0), begin)
        writer.transaction("stream", [time], "0/0", span)
        writer.record("0/0/measured/stream/write/ok/expected", [time // 1000], span, 1_000_000_000)
        assert number < 327
    return writer


def test_the_published_cliff_is_reported_with_its_iteration_factor_and_bytes(
    tmp_path: Path,
) -> None:
    found = found_in(write_stream(tmp_path), targets=(make_target(name="efs", **NFS),))
    (step,) = found.steps
    assert (step.subject, step.target, step.direction) == ("stream", "efs", "slower")
    assert step.sample == 327
    assert step.factor == pytest.approx(410, rel=0.02)
    assert step.after_s == pytest.approx(326 * 9.8, rel=0.02)
    assert step.bytes_before == 326 * 1_000_000_000
    assert step.ops == ("write",)
    (sentence,) = [item for item in sentences(found) if item.label == "cliff"]
    assert sentence.weight == "alarm"
    assert "from sample 327 on" in sentence.text
    assert "after 326 GB moved" in sentence.text
    assert "too few samples to tell whether it stays" in sentence.text


@pytest.mark.parametrize(
    ("ended", "lasted_ns", "weight", "told"),
    [
        (300, 3_267_000_000_000, "alarm", "the longest that ended took 12.0 s"),
        (300, 13_000_000_000, "note", "the longest that ended took 12.0 s"),
        (300, 1_000_000_000, None, ""),
        (0, 1_000_000_000, "alarm", "none ended"),
    ],
)
def test_what_outlasts_all_that_ended_and_never_did_stands_out(
    tmp_path: Path, ended: int, lasted_ns: int, weight: str | None, told: str
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("stream", [10**10] * ended + [12 * 10**9] * (ended > 0))
    tag = "0/0/measured/stream/transaction/cancelled/expected"
    writer.record(tag, [lasted_ns])
    found = [item for item in sentences(found_in(writer)) if item.label == "cut-off"]
    assert [item.weight for item in found] == ([] if weight is None else [weight])
    assert all(told in item.text and "1 stream on local had not" in item.text for item in found)


def test_a_steady_run_stands_out_in_nothing(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(60):
        times = noisy(second, 1e6, 40)
        span = (second, second + 1)
        writer.transaction("page", times, "0/0", span)
        writer.record("0/0/measured/page/read/ok/expected", [time // 2 for time in times], span)
    found = found_in(writer)
    assert [item.text for item in sentences(found)] == []
    assert found.notes == ()
    assert found.acknowledged == ()


def test_a_run_too_short_to_tell_says_what_it_cannot_tell(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [10**6] * 20)
    assert found_in(writer).notes == (
        (
            "not enough data to look for cliffs and other steps (17 intervals with samples), "
            "drift (30 intervals with samples): page has 1"
        ),
        "not enough data to look for slow begins (7 intervals in a round): page has 1",
        (
            "not enough data to look for two groups of times (100 samples), outliers and what made "
            "the slowest slow (100 samples): page has 20"
        ),
    )


def test_only_what_has_too_few_data_is_named(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(40):
        span = (second, second + 1)
        writer.transaction("page", noisy(second, 1e6, 10), "0/0", span)
        if second < 20:
            writer.transaction("login", noisy(second, 1e6, 10), "0/0", span)
    assert found_in(writer).notes == (
        "not enough data to look for drift (30 intervals with samples): login has 20",
    )


def test_many_subjects_with_too_few_data_are_counted(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for number in range(9):
        writer.transaction(f"page{number}", [10**6] * 20)
    notes = found_in(writer).notes
    assert all("and 5 more have too few" in note for note in notes)
    assert len(notes) == 3


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_slow_begin_of_each_round_is_found(tmp_path: Path, rounds: int) -> None:
    writer = RunWriter(tmp_path)
    for number in range(rounds):
        for second in range(30):
            begin = number * 60 + second
            level = 1e6 * (8 if second == 0 else 1)
            writer.transaction("page", noisy(begin, level, 20), f"0/{number}", (begin, begin + 1))
    (touch,) = found_in(writer).first_touches
    assert touch.factor == pytest.approx(8, rel=0.1)
    assert touch.rounds == rounds


def test_a_cache_and_a_server_are_two_groups(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(20):
        times = noisy(second, 3e3, 70) + noisy(second + 100, 6e5, 30)
        writer.record("0/0/measured/page/read/ok/expected", times, (second, second + 1))
    found = found_in(writer, targets=(make_target(name="nfs", **NFS),))
    (group,) = found.modes
    assert group.fast_share == pytest.approx(0.7, abs=0.01)
    assert group.fast_ns == pytest.approx(3e3, rel=0.1)
    assert group.slow_ns == pytest.approx(6e5, rel=0.1)
    assert group.reading == "as fast as this client's memory, and as slow as the server"
    (sentence,) = sentences(found)
    assert sentence.text.startswith("70 % of page: read on nfs took about")


def test_two_transactions_with_an_op_in_common_are_no_two_groups(tmp_path: Path) -> None:
    """One opens what is there, the other makes it: most are quick, none is both."""
    writer = RunWriter(tmp_path)
    for second in range(20):
        span = (second, second + 1)
        for name, level, calls in (("look", 4e3, 80), ("save", 5e4, 20)):
            times = noisy(second, level, calls)
            writer.transaction(name, [2 * time for time in times], "0/0", span)
            writer.record(f"0/0/measured/{name}/open/ok/expected", times, span)
    assert found_in(writer, targets=(make_target(name="nfs", **NFS),)).modes == ()


def test_jobs_of_fio_with_an_op_in_common_are_no_two_groups(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for job, level in enumerate((1e4, 3e6)):
        for second in range(20 * job, 20 * job + 20):
            span, times = (second, second + 1), noisy(second, level, 40)
            writer.transaction(f"depth{job}", times, "0/0", span)
            writer.record(f"0/0/measured/depth{job}/read/ok/expected", times, span)
    found = found_in(writer, load=make_load(order="in turn"))
    assert (found.modes, found.outliers) == ((), ())
    assert (found.steps, found.drifts, found.first_touches) == ((), (), ())


def test_an_op_of_one_job_of_fio_that_becomes_slower_alone_is_told_with_its_job(
    tmp_path: Path,
) -> None:
    writer = RunWriter(tmp_path)
    for second in range(80):
        job, span = second // 40, (second, second + 1)
        reads = noisy(second, 1e5 if job else 1e6, 40)
        writes = noisy(second + 100, 6e7 if second >= 60 else 3e6, 4)
        tag = f"0/0/measured/mixed{job}"
        writer.record(f"{tag}/transaction/ok/expected", reads, span)
        writer.record(f"{tag}/read/ok/expected", reads, span)
        writer.record(f"{tag}/write/ok/expected", writes, span)
    found = found_in(writer, load=make_load(order="in turn"))
    assert [(step.subject, step.kind, round(step.at_s)) for step in found.steps] == [
        ("mixed1/write", "op", 60)
    ]


def test_the_groups_of_a_job_of_fio_are_told_of_once(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(20):
        span, times = (second, second + 1), noisy(second, 1e4, 40) + noisy(second, 3e6, 40)
        writer.transaction("depth1", times, "0/0", span)
        writer.record("0/0/measured/depth1/read/ok/expected", times, span)
    found = found_in(writer, load=make_load(order="in turn"))
    assert [(group.subject, group.transaction) for group in found.modes] == [("depth1", None)]


def test_an_open_that_may_make_its_file_is_not_laid_to_a_cache(tmp_path: Path) -> None:
    readings = {}
    for number, op in enumerate(("read", "write")):
        writer = RunWriter(tmp_path / op)
        for second in range(20):
            span = (second, second + 1)
            times = noisy(second, 3e3, 70) + noisy(second + 100, 6e5, 30)
            writer.record("0/0/measured/page/open/ok/expected", times, span)
            writer.record(f"0/0/measured/page/{op}/ok/expected", noisy(number, 2e5, 100), span)
        (group,) = found_in(writer, targets=(make_target(name="nfs", **NFS),)).modes
        readings[op] = group.reading
        assert (group.subject, group.transaction) == ("open", "page")
    assert readings["read"] is not None
    assert readings["write"] is None


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0, 2.0])
def test_one_group_stays_one_however_wide_it_is(spread: float) -> None:
    for seed in range(30):
        random = np.random.default_rng(seed)
        times = 1e5 * random.lognormal(sigma=spread, size=2_000)
        assert find_split(Histogram(encode(int(time) + 1 for time in times))) is None


def test_few_samples_are_no_groups() -> None:
    times = [1_000] * 40 + [1_000_000] * 40
    assert find_split(Histogram(encode(times))) is None


def test_the_tail_is_laid_to_the_op_and_the_path_that_made_it(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    usual, slow = noisy(1, 1e6, 960), noisy(2, 5e7, 40)
    writer.transaction("page", usual + slow)
    writer.record("0/0/measured/page/read/ok/expected", [time // 2 for time in usual])
    writer.record("0/0/measured/page/open/ok/expected", [time // 4 for time in usual] + slow)
    events = [
        {"t_s": 1.0, "kind": "slow", "user": 0, "target": 0, "transaction": "page", "op": "open",
         "path": path, "outcome": "ok", "service_ns": 90_000_000}
        for path in ("style.css",) * 4 + ("a", "b")
    ]  # fmt: skip
    (tail,) = found_in(writer, events).tails
    assert tail.percentile == "p99"
    assert [found.op for found in tail.ops] == ["open"]
    assert tail.explained == 1
    assert [(found.path, found.calls) for found in tail.paths] == [("style.css", 4)]


def test_a_job_of_fio_has_no_calls_to_lay_its_tail_to(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    times = noisy(1, 1e6, 2_000)
    writer.transaction("w", times)
    for op in ("write", "fsync"):
        writer.record(f"0/0/measured/w/{op}/ok/expected", times)
    assert found_in(writer, load=make_load(order="in turn")).tails == ()
    assert found_in(writer).tails != ()


def test_few_calls_that_take_much_of_the_time_are_outliers(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/page/read/ok/expected", [10_000] * 990 + [10_000_000] * 10)
    (found,) = found_in(writer).outliers
    assert (found.transaction, found.count, found.of) == ("page", 10, 1_000)
    assert found.time_share == pytest.approx(0.91, abs=0.01)


def test_the_slow_calls_of_one_transaction_are_no_outliers_of_another(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/look/open/ok/expected", [4_000] * 9_900)
    writer.record("0/0/measured/save/open/ok/expected", [3_000_000] * 100)
    assert found_in(writer).outliers == ()


def test_the_lateness_of_replayed_events_is_no_op(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/site/event.lag/ok/expected", [10_000] * 990 + [10_000_000] * 10)
    found = found_in(writer)
    assert (found.outliers, found.modes) == ((), ())


def test_a_step_of_an_op_alone_is_told_only_when_the_op_weighs(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(60):
        span, scale = (second, second + 1), 20 if second >= 30 else 1
        writer.record("0/0/measured/-/read/ok/expected", noisy(second, 1e6, 50), span)
        writer.record("0/0/measured/-/stat/ok/expected", noisy(second + 100, 1e3 * scale, 50), span)
    assert found_in(writer).steps == ()


def test_in_an_empty_run_nothing_is_found(tmp_path: Path) -> None:
    found = found_in(RunWriter(tmp_path))
    assert list(sentences(found)) == []
    assert list(acknowledgements(found)) == []
    assert found.notes == ("not enough data to look for anything: nothing was measured",)
