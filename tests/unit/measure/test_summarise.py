from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.measure.summary import Statistics, Summary, samples_needed
from tests.unit.runs import RunWriter, make_load, make_run, make_target


def summarised(folder: Path) -> Summary:
    return summarise(load_run(folder))


@given(st.lists(st.lists(st.integers(1, 10**10), min_size=1, max_size=80), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)  # each writes a folder
def test_a_summary_over_intervals_and_rounds_is_that_of_all_samples(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[int]]
) -> None:
    writer = RunWriter(tmp_path_factory.mktemp("run"))
    for number, samples in enumerate(rounds):
        writer.transaction("page", samples, f"0/{number}", (number * 2, number * 2 + 1))
    overall = summarised(writer.write(make_run())).targets[0].overall
    everything = [sample for samples in rounds for sample in samples]
    latency = overall.transactions[0].latency
    assert overall.measured_s == len(rounds)
    assert latency.count == len(everything)
    assert latency.p50_ns == pytest.approx(
        float(np.percentile(everything, 50, method="inverted_cdf")), rel=0.001, abs=1
    )
    assert latency.max_ns == pytest.approx(max(everything), rel=0.001)


@pytest.mark.parametrize(
    ("count", "given_figures"),
    [
        (19, ["p50_ns"]),
        (20, ["p50_ns", "p95_ns"]),
        (99, ["p50_ns", "p95_ns"]),
        (100, ["p50_ns", "p95_ns", "p99_ns"]),
        (999, ["p50_ns", "p95_ns", "p99_ns"]),
        (1000, ["p50_ns", "p95_ns", "p99_ns", "p99_9_ns"]),
    ],
)
def test_a_percentile_is_given_only_when_the_sample_supports_it(
    tmp_path: Path, count: int, given_figures: list[str]
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [1000] * count)
    latency = summarised(writer.write(make_run())).targets[0].overall.transactions[0].latency
    figures = latency.model_dump(include={"p50_ns", "p95_ns", "p99_ns", "p99_9_ns"})
    assert [name for name, value in figures.items() if value is not None] == given_figures


@pytest.mark.parametrize(
    ("percent", "needed"), [(50, 1), (95, 20), (99, 100), (99.9, 1000), (100, 1)]
)
def test_samples_needed_agree_with_what_summaries_leave_out(percent: float, needed: int) -> None:
    assert samples_needed(percent) == needed


def test_warm_up_is_left_out(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/warm-up/page/transaction/ok/expected", [10**9] * 50, (0, 5))
    writer.transaction("page", [1000] * 10, span=(5, 7))
    overall = summarised(writer.write(make_run())).targets[0].overall
    assert overall.measured_s == 2
    assert overall.transactions[0].count == 10
    assert overall.transactions[0].rate_per_s == 5


def test_errors_count_but_do_not_make_times_shorter(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [1_000_000] * 10)
    writer.record("0/0/measured/page/transaction/failed/unexpected", [1] * 30)
    writer.record("0/0/measured/page/open/EIO/unexpected", [1] * 30)
    page = summarised(writer.write(make_run())).targets[0].overall.transactions[0]
    assert (page.count, page.errors, page.rate_per_s, page.throughput_per_s) == (40, 30, 40, 10)
    assert page.latency.p50_ns == pytest.approx(1_000_000, rel=0.001)
    assert page.ops[0].outcomes[0].outcome == "EIO"


def test_cancelled_transactions_are_told_apart(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [1000] * 3)
    writer.record("0/0/measured/page/transaction/cancelled/unexpected", [10**10])
    page = summarised(writer.write(make_run())).targets[0].overall.transactions[0]
    assert (page.count, page.errors, page.cancelled) == (3, 0, 1)
    assert page.latency.p50_ns == pytest.approx(1000, rel=0.001)
    assert page.latency.mean_ns == pytest.approx(1000, rel=0.001)


@pytest.mark.parametrize(("lasted_ns", "is_bound"), [(10**10, True), (500, False)])
def test_the_maximum_is_at_least_as_long_as_what_never_ended_had_lasted(
    tmp_path: Path, lasted_ns: int, *, is_bound: bool
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [1000] * 3)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [300, lasted_ns])
    target = summarised(writer.write(make_run())).targets[0]
    for part in (target.overall, *target.rounds):
        latency = part.transactions[0].latency
        assert latency.unfinished_ns is not None
        assert lasted_ns * 0.999 <= latency.unfinished_ns <= lasted_ns, "it is not rounded up"
        assert latency.max_ns == pytest.approx(max(1000, lasted_ns), rel=0.001)
        assert (latency.count, latency.max_is_bound) == (3, is_bound)


def test_what_never_ended_alone_is_a_maximum_and_no_other_figure(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [10**10])
    writer.record("0/0/measured/page/transaction.lag/cancelled/expected", [10**6])
    page = summarised(writer.write(make_run())).targets[0].overall.transactions[0]
    assert (page.latency.max_is_bound, page.latency.mean_ns, page.latency.p50_ns) == (
        True,
        None,
        None,
    )
    assert page.lag.max_ns is None, "how late it began is known, and it did not succeed"


def test_a_summary_that_was_written_before_unfinished_times_were_kept_is_read() -> None:
    keys = ("mean_ns", "stdev_ns", "min_ns", "p50_ns", "p95_ns", "p99_ns", "p99_9_ns", "max_ns")
    old = Statistics.model_validate({"count": 3, **dict.fromkeys(keys, 7)})
    assert (old.unfinished_ns, old.max_is_bound) == (None, False)


def test_calls_that_were_broken_off_count_in_the_maximum_alone(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [1000] * 3)
    writer.record("0/0/measured/page/flock/ok/expected", [500] * 3)
    writer.record("0/0/measured/page/flock/cancelled/expected", [10**10])
    overall = summarised(writer.write(make_run())).targets[0].overall
    for flock in (*overall.ops, *overall.transactions[0].ops):
        assert (flock.count, flock.errors, flock.throughput_per_s, flock.time.count) == (3, 0, 3, 3)
        assert flock.time.p50_ns == pytest.approx(500, rel=0.001)
        assert flock.time.max_ns == flock.time.unfinished_ns == pytest.approx(10**10, rel=0.001)
        assert {found.outcome: found.count for found in flock.outcomes} == {"ok": 3, "cancelled": 1}


def test_an_expected_errno_is_no_error(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/page/stat/ENOENT/expected", [300] * 4)
    overall = summarised(writer.write(make_run())).targets[0].overall
    assert (overall.errors, overall.ops[0].time.count) == (0, 4)


def test_calls_outside_of_transactions_are_kept_apart(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [1000] * 5)
    writer.record("0/0/measured/save/open/ok/expected", [300] * 5)
    writer.record("0/0/measured/-/open/ok/expected", [300] * 7)
    writer.record("0/0/measured/-/stat/ENOENT/unexpected", [300] * 3)
    overall = summarised(writer.write(make_run())).targets[0].overall
    assert [found.name for found in overall.transactions] == ["save"]
    assert [(op.op, op.count, op.errors) for op in overall.outside] == [
        ("open", 7, 0),
        ("stat", 3, 3),
    ]
    assert {op.op: op.count for op in overall.ops} == {"open": 12, "stat": 3}
    assert overall.errors == 3


def test_a_transaction_may_have_the_name_of_those_outside(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("-", [1000] * 5)
    writer.record("0/0/measured/-/stat/ENOENT/unexpected", [300])
    overall = summarised(writer.write(make_run())).targets[0].overall
    assert ([found.name for found in overall.transactions], overall.outside) == (["-"], ())
    assert overall.errors == 1


def test_bytes_come_from_the_timeline(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(4):
        tag = "0/0/measured/page/write/ok/expected"
        writer.record(tag, [500], (second, second + 1), moved=4096)
    writer.transaction("page", [900])
    page = summarised(writer.write(make_run())).targets[0].overall.transactions[0]
    assert (page.ops[0].bytes, page.ops[0].bytes_per_s) == (16384, 4096)
    assert (page.bytes, page.bytes_per_s) == (16384, 4096)


def test_seconds_in_which_nothing_ended_count_as_measured(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("page", [1000] * 10, span=(2, 3))
    events = [
        {"t_s": 1.0, "kind": "phase", "phase": "measured", "target": 0, "round": 0},
        {"t_s": 11.0, "kind": "phase", "phase": "idle"},
    ]
    overall = summarised(writer.write(make_run(), events)).targets[0].overall
    assert overall.measured_s == 10
    assert overall.transactions[0].rate_per_s == 1


@pytest.mark.parametrize(
    ("loop", "measured_s", "rate"), [("open", 4, 30), ("paced", 4, 30), ("closed", 6, 20)]
)
def test_rates_of_a_schedule_are_those_of_the_time_in_which_it_was_followed(
    tmp_path: Path, loop: str, measured_s: float, rate: float
) -> None:
    writer = RunWriter(tmp_path)
    for number in range(2):
        writer.transaction("page", [1000] * 60, f"0/{number}", (number * 10, number * 10 + 3))
    events = [
        {"t_s": number * 10 + second, "target": 0, "round": number, **event}
        for number in range(2)
        for second, event in (
            (0, {"kind": "phase", "phase": "measured"}),
            (2, {"kind": "ending", "unbegun": 3, "client": 0}),
            (2, {"kind": "ending", "unbegun": 1, "client": 1}),
            (3, {"kind": "phase", "phase": "idle"}),
        )
    ]
    run = make_run(load=make_load(loop=loop))
    (target,) = summarised(writer.write(run, events)).targets
    overall = target.overall
    assert (overall.measured_s, overall.drain_s, overall.unbegun) == (measured_s, 2, 8)
    assert overall.transactions[0].rate_per_s == rate
    assert target.rounds[0].unbegun == 4


def test_targets_that_users_in_python_are_on_at_once_are_measured_for_the_same_time(
    tmp_path: Path,
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [1000] * 10, span=(0, 1))
    writer.transaction("save", [1000] * 5, "1/0", span=(4, 5))
    writer.transaction("save", [1000] * 5, "1/0", span=(8, 9))
    events = [
        {"t_s": 0.0, "kind": "phase", "phase": "measured", "target": 0, "round": 0},
        {"t_s": 9.5, "kind": "ending", "target": 0, "round": 0, "unbegun": 0},
        {"t_s": 10.0, "kind": "phase", "phase": "idle", "target": 0, "round": 0},
    ]
    run = make_run(targets=(make_target(), make_target(1, "nfs"), make_target(2, "none")))
    first, second, third = summarised(writer.write(run, events)).targets
    for overall in (first.overall, second.overall):
        assert (overall.measured_s, overall.drain_s) == (10, 0.5)
        assert overall.transactions[0].rate_per_s == 1
    assert third.rounds == ()


def test_users_on_another_target_may_begin_before_the_first_target_is_told_to_have_begun(
    tmp_path: Path,
) -> None:
    # As on several clients: it is told by the one that was told first.
    writer = RunWriter(tmp_path)
    writer.transaction("save", [1000] * 10, span=(3, 4))
    writer.transaction("save", [1000] * 10, "1/0", span=(0, 1))
    events = [
        {"t_s": 0.25, "kind": "phase", "phase": "measured", "target": 0, "round": 0},
        {"t_s": 8.0, "kind": "ending", "target": 0, "round": 0, "unbegun": 0},
        {"t_s": 10.0, "kind": "phase", "phase": "idle", "target": 0, "round": 0},
    ]
    run = make_run(targets=(make_target(), make_target(1, "nfs")))
    _, second = summarised(writer.write(run, events)).targets
    assert (second.overall.measured_s, second.overall.drain_s) == (10, 2)


def test_a_target_whose_turn_is_not_known_is_not_given_that_of_another(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [1000] * 10, span=(0, 1))
    writer.transaction("save", [1000] * 5, "1/0", span=(12, 13))
    events = [
        {"t_s": 0.0, "kind": "phase", "phase": "measured", "target": 0, "round": 0},
        {"t_s": 10.0, "kind": "phase", "phase": "idle"},
    ]
    run = make_run(targets=(make_target(), make_target(1, "nfs")))
    summary = summarised(writer.write(run, events))
    assert [target.overall.measured_s for target in summary.targets] == [10, 1]


def test_targets_and_rounds_are_kept_apart(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for target in (0, 1):
        for number in (0, 1, 2):
            samples = [1000 * (1 + target) + number] * 10
            begin = number * 2 + target
            writer.transaction("page", samples, f"{target}/{number}", (begin, begin + 1))
    run = make_run(targets=(make_target(), make_target(1, "nfs")), load=make_load(rounds=3))
    summary = summarised(writer.write(run))
    assert [target.name for target in summary.targets] == ["local", "nfs"]
    for place, found in enumerate(summary.targets):
        assert [part.number for part in found.rounds] == [0, 1, 2]
        for number, part in enumerate(found.rounds):
            assert part.transactions[0].latency.min_ns == 1000 * (1 + place) + number


def test_a_run_that_measured_nothing_has_empty_targets(tmp_path: Path) -> None:
    overall = summarised(RunWriter(tmp_path).write(make_run())).targets[0].overall
    assert (overall.measured_s, overall.transactions, overall.ops) == (0, (), ())
