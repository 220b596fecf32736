from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replayer.measure.clients import TaskFailure
from replayer.measure.health import Health
from replayer.measure.pacing import pacing_warnings
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import Process, this_process
from replayer.measure.summarise import summarise
from replayer.verdict.judgement import judge
from tests.unit.runs import RunWriter, make_health, make_load, make_run, make_target
from tests.unit.verdict.judged import judged, pages


@given(
    st.lists(st.integers(1, 10**9), min_size=20, max_size=200),
    st.integers(1, 10**9),
    st.sampled_from([50, 90, 95]),
)
@settings(max_examples=40, deadline=None)  # each writes a folder
def test_a_percentile_passes_when_the_exact_one_does(
    tmp_path_factory: pytest.TempPathFactory, samples: list[int], limit: int, percent: int
) -> None:
    writer = pages(tmp_path_factory.mktemp("run"), samples)
    exact = float(np.percentile(samples, percent, method="inverted_cdf"))
    outcome = judged(writer, f"page.p{percent} < {limit}ns").outcome
    if abs(exact - limit) > exact / 500:
        assert outcome == ("pass" if exact < limit else "fail")


@pytest.mark.parametrize(
    ("threshold", "outcome", "says"),
    [
        ("page.p95 < 2ms", "pass", "1.00 ms"),
        ("page.p95 < 1us", "fail", "1.00 ms"),
        ("page.p99 < 2ms", "inconclusive", "too few samples: 50 of at least 100"),
        ("page/open.p95 < 2ms", "pass", "1.00 ms"),
        ("open.max < 2ms", "pass", "1.00 ms"),
        ("page.lag.max <= 0ns", "pass", "0 ns"),
        ("page.errors == 0", "pass", "0"),
        ("errors < 1%", "pass", "0 %"),
        ("rate >= 50/s", "pass", "50/s"),
        ("throughput > 50/s", "fail", "50/s"),
        ("gone.p95 < 1s", "inconclusive", "too few samples: 0 of at least 20"),
        ("gone.errors == 0", "inconclusive", "no gone was measured on local"),
    ],
)
def test_each_threshold_is_judged_by_its_figure(
    tmp_path: Path, threshold: str, outcome: str, says: str
) -> None:
    verdict = judged(pages(tmp_path, [1_000_000] * 50), threshold)
    assert (verdict.judgements[0].outcome, verdict.judgements[0].says) == (outcome, says)
    assert verdict.exit_code == {"pass": 0, "fail": 1, "inconclusive": 4}[outcome]


def test_a_threshold_holds_for_every_target_or_for_the_one_it_names(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 20)
    writer.transaction("page", [10**9] * 20, "1/0")
    writer.call("page", "1/0")
    targets = (make_target(), make_target(1, "nfs"))
    both = judged(writer, "page.p95 < 1ms", targets=targets)
    assert [(found.target, found.outcome) for found in both.judgements] == [
        ("local", "pass"),
        ("nfs", "fail"),
    ]
    assert judged(writer, "local:page.p95 < 1ms", targets=targets).outcome == "pass"


def test_a_transaction_wins_over_an_op_of_the_same_name(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("open", [10**9] * 20)
    writer.record("0/0/measured/open/open/ok/expected", [1000] * 20)
    assert judged(writer, "open.p95 > 900ms").outcome == "pass"


def test_errors_fail_even_when_the_client_was_saturated(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 20)
    writer.record("0/0/measured/page/transaction/failed/unexpected", [1000])
    assert judged(writer, "errors == 0", health=make_health(client_cpu_share=1.0)).exit_code == 1


@pytest.mark.parametrize(
    ("health", "reason"),
    [
        (make_health(client_cpu_share=1.0), "the client was saturated"),
        (make_health(stood_still_ns=10**9), "the client stood still"),
    ],
)
def test_a_slow_figure_that_may_be_the_clients_proves_nothing(
    tmp_path: Path, health: Health, reason: str
) -> None:
    writer = pages(tmp_path, [10**9] * 20)
    verdict = judged(writer, "page.p95 < 1ms", health=health)
    assert verdict.exit_code == 4
    assert reason in verdict.reasons[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "interrupted"}, "interrupted"),
        ({"status": "failed", "failure": "disk full"}, "failed"),
        ({"health": make_health(users_given_up=2)}, "2 users hung"),
        ({"health": make_health(run_queue_delay_ns=500)}, "saturated"),
        ({"health": make_health(stood_still_ns=10**9)}, "the client stood still for 1.00 s"),
    ],
)
def test_a_run_that_went_wrong_does_not_pass(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    verdict = judged(pages(tmp_path, [1000] * 20), "page.p95 < 1s", **changes)
    assert verdict.outcome == "inconclusive"
    assert reason in verdict.reasons[0]


def test_a_limit_that_an_interrupted_run_missed_is_told_and_proves_nothing(tmp_path: Path) -> None:
    verdict = judged(pages(tmp_path, [10**9] * 20), "page.p95 < 1ms", status="interrupted")
    assert (verdict.outcome, verdict.exit_code) == ("inconclusive", 4)
    (found,) = verdict.judgements
    assert found.outcome == "inconclusive"
    assert found.says.endswith("s: missed when the run was interrupted")


def test_the_exit_code_of_a_run_that_failed_is_that_of_its_failure(tmp_path: Path) -> None:
    failed = {"status": "failed", "failure": "more users were asked for", "failure_code": 2}
    verdict = judged(pages(tmp_path, [1000] * 20), "page.p95 < 1s", **failed)
    assert (verdict.outcome, verdict.exit_code) == ("inconclusive", 2)


@pytest.mark.parametrize(
    ("process", "says"),
    [
        (this_process(), "missed in a run that has not ended yet"),
        (
            this_process().model_copy(update={"start_ticks": 1}),
            "missed when the run was killed",
        ),
    ],
)
def test_a_limit_that_is_missed_in_what_a_run_has_measured_by_now_proves_nothing(
    tmp_path: Path, process: Process, says: str
) -> None:
    found = pages(tmp_path, [10**9] * 20)
    verdict = judged(found, "page.p95 < 1ms", status="running", ended=None, process=process)
    assert (verdict.outcome, verdict.exit_code) == ("inconclusive", 4)
    assert verdict.judgements[0].says.endswith(f"s: {says}")


def test_a_rate_that_was_kept_is_not_missed_in_what_is_left_of_a_run(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(3):
        writer.transaction("page", [10**6] * 20, span=(second, second + 1))
    writer.call("page")
    assert judged(writer, "page.rate > 15/s").outcome == "pass"
    writer.lines[4:7] = []  # the second in the middle
    verdict = judged(writer, "page.rate > 15/s")
    assert (verdict.outcome, verdict.exit_code) == ("inconclusive", 4)
    assert verdict.judgements[0].says == "13.3/s: missed in what is left of the run"


def test_a_limit_that_was_missed_before_the_run_failed_stays_missed(tmp_path: Path) -> None:
    verdict = judged(pages(tmp_path, [10**9] * 20), "page.p95 < 1ms", status="failed")
    assert (verdict.outcome, verdict.exit_code) == ("fail", 1)


def test_a_run_in_which_nothing_succeeded_is_inconclusive(tmp_path: Path) -> None:
    assert judged(RunWriter(tmp_path)).exit_code == 4


@pytest.mark.parametrize(
    ("threshold", "outcome", "says"),
    [
        ("errors < 30%", "pass", "25 %"),
        ("errors == 0", "fail", "30"),
        ("throughput >= 40/s", "pass", "40/s"),
        ("stat.errors < 50%", "fail", "50 %"),
    ],
)
def test_a_call_outside_of_transactions_is_a_try_of_its_own(
    tmp_path: Path, threshold: str, outcome: str, says: str
) -> None:
    writer = pages(tmp_path, [1000] * 40)
    writer.record("0/0/measured/page/transaction/failed/unexpected", [1000] * 20)
    writer.record("0/0/measured/page/open/EIO/unexpected", [1000] * 20)
    writer.record("0/0/measured/-/stat/ok/expected", [1000] * 10)
    writer.record("0/0/measured/-/stat/ENOENT/unexpected", [1000] * 10)
    writer.record("0/0/measured/-/open/ok/expected", [1000] * 40)
    (found, *_) = judged(writer, threshold).judgements
    assert (found.outcome, found.says) == (outcome, says)


def test_a_transaction_fails_once_however_many_of_its_calls_do(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 9)
    writer.record("0/0/measured/page/transaction/failed/unexpected", [1000])
    writer.record("0/0/measured/page/stat/DIVERGED/unexpected", [1000] * 50)
    found = judged(writer, "errors <= 10%", "errors == 0").judgements
    assert [(each.outcome, each.says) for each in found] == [("pass", "10 %"), ("fail", "50")]


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ("page.max < 5s", "fail"),
        ("page.max < 60s", "inconclusive"),
        ("page.max > 5s", "pass"),
        ("page.max > 60s", "inconclusive"),
        ("page.service.max < 60s", "inconclusive"),
        ("page/read.max < 60s", "inconclusive"),
        ("page.lag.max < 1ms", "pass"),
        ("page.p50 < 1ms", "pass"),
    ],
)
def test_a_maximum_is_judged_by_what_it_is_at_least(
    tmp_path: Path, limit: str, outcome: str
) -> None:
    writer = pages(tmp_path, [1000] * 200)
    for op in ("transaction", "transaction.service", "read"):
        writer.record(f"0/0/measured/page/{op}/cancelled/expected", [40 * 10**9])
    (judgement,) = judged(writer, limit).judgements
    assert judgement.outcome == outcome
    says = "\N{GREATER-THAN OR EQUAL TO} 40.0 s: it had not ended when its turn did"
    assert (judgement.says == says) == ("lag" not in limit and "p50" not in limit)


def test_a_maximum_is_known_where_what_never_ended_is_shorter(tmp_path: Path) -> None:
    writer = pages(tmp_path, [10**6] * 200)
    writer.record("0/0/measured/page/transaction/cancelled/expected", [1000])
    (judgement,) = judged(writer, "page.max < 1s").judgements
    assert (judgement.outcome, judgement.says) == ("pass", "1.00 ms")


def test_a_run_without_transactions_is_judged_by_its_calls(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/-/stat/ok/expected", [1000] * 20)
    verdict = judged(writer, "errors == 0", "stat.p95 < 1ms", "throughput > 19/s")
    assert (verdict.outcome, verdict.reasons) == ("pass", ())
    failing = RunWriter(tmp_path / "failing")
    failing.record("0/0/measured/-/stat/EIO/expected", [1000] * 20, span=(0, 1))
    failing.record("0/0/measured/page/transaction/cancelled/expected", [1000])
    assert judged(failing).exit_code == 4


def test_a_target_without_a_file_call_proves_nothing(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 20)
    for name in ("think", "wait"):
        writer.transaction(name, [1000] * 20, "1/0")
    writer.record("1/0/measured/wait/await/ok/expected", [1000] * 20)
    verdict = judged(writer, "errors == 0", targets=(make_target(), make_target(1, "nfs")))
    assert (verdict.outcome, verdict.exit_code) == ("inconclusive", 4)
    assert verdict.reasons == (
        "no file call was made on nfs in the measured phase: think, wait ended without one",
    )


def test_a_round_without_a_file_call_proves_nothing(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for number in (0, 1):
        writer.transaction("page", [1000] * 20, f"0/{number}", (number, number + 1))
    writer.call("page")
    verdict = judged(writer, load=make_load(rounds=2))
    assert verdict.reasons == (
        "no file call was made on local in the measured phase of round 2: page ended without one",
    )


def test_one_transaction_of_several_without_a_file_call_is_a_warning(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 20)
    writer.transaction("think", [1000] * 20)
    record = load_run(writer.write(make_run()))
    summary = summarise(record)
    assert judge(record, summary).exit_code == 0
    (warning,) = pacing_warnings(record.run.load, summary, None)
    assert (warning.kind, warning.message) == (
        "no calls",
        "think made no file call on local: the time of it is not the mount's",
    )


@pytest.mark.parametrize(("warmed", "told"), [(12, True), (11, False)])
def test_transactions_that_the_warm_up_used_up_are_told(
    tmp_path: Path, warmed: int, *, told: bool
) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/warm-up/page/transaction/ok/expected", [1000] * warmed)
    load = make_load(transactions_per_user=3, warm_up_s=0.5, duration_s=None)
    (reason,) = judged(writer, load=load).reasons
    assert reason.startswith("no transaction succeeded on local in the measured phase")
    assert ("3 transactions of each user ended in the warm-up (0.5 s)" in reason) == told


def test_a_run_without_thresholds_passes_when_it_measured_something(tmp_path: Path) -> None:
    verdict = judged(pages(tmp_path, [1000]))
    assert (verdict.exit_code, verdict.judgements, verdict.reasons) == (0, (), ())


@pytest.mark.parametrize(
    ("unbegun", "exit_code", "reasons"),
    [(1, 0, 0), (9, 4, 1)],
)
def test_a_schedule_that_was_not_followed_proves_nothing(
    tmp_path: Path, unbegun: int, exit_code: int, reasons: int
) -> None:
    writer = pages(tmp_path, [1000] * 100)
    events = [{"t_s": 1.0, "kind": "ending", "target": 0, "round": 0, "unbegun": unbegun}]
    record = load_run(writer.write(make_run(load=make_load(loop="open")), events))
    summary = summarise(record)
    verdict = judge(record, summary)
    assert (verdict.exit_code, len(verdict.reasons)) == (exit_code, reasons)
    (warning,) = pacing_warnings(record.run.load, summary, None)
    assert f"{unbegun} of {100 + unbegun} arrivals on local never started" in warning.message
    assert all(reason in warning.message for reason in verdict.reasons)


def test_users_that_went_on_after_the_end_are_told(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 100)
    for end_s, kinds in ((0.9, []), (1.0, ["measured longer"])):
        events = [{"t_s": end_s, "kind": "ending", "target": 0, "round": 0, "unbegun": 0}]
        load = make_load(duration_s=0.8)
        record = load_run(writer.write(make_run(load=load), events))
        found = pacing_warnings(load, summarise(record), None)
        assert [warning.kind for warning in found] == kinds


def test_how_long_users_went_on_is_told_in_plain_digits(tmp_path: Path) -> None:
    writer = pages(tmp_path, [1000] * 100)
    events = [
        {"t_s": 0.0, "kind": "phase", "phase": "measured", "target": 0, "round": 0},
        {"t_s": 3903.2, "kind": "ending", "target": 0, "round": 0, "unbegun": 0},
        {"t_s": 3903.2, "kind": "phase", "phase": "idle"},
    ]
    load = make_load(duration_s=3600.0)
    record = load_run(writer.write(make_run(load=load), events))
    (warning,) = pacing_warnings(load, summarise(record), None)
    assert warning.message.startswith(
        "local was measured for 3,903 s, not 3,600 s: users continued"
    )


def test_a_folder_that_is_gone_is_the_environments_whatever_was_measured(tmp_path: Path) -> None:
    verdict = judged(pages(tmp_path, [1000] * 20), "errors == 0", losses=("it is gone",))
    assert (verdict.outcome, verdict.exit_code) == ("inconclusive", 3)
    assert verdict.reasons == ("it is gone",)


def test_a_request_that_failed_fails_the_run_and_is_named(tmp_path: Path) -> None:
    failures = (TaskFailure(what="request", raised="GET /: 500", place=None, count=3),)
    verdict = judged(pages(tmp_path, [5]), task_failures=failures)
    (judgement,) = verdict.judgements
    assert (verdict.outcome, judgement.threshold) == ("fail", "other requests succeed")
    assert judgement.says == "3 failed, first GET /: 500"


def test_a_task_that_raised_fails_the_run_and_is_named(tmp_path: Path) -> None:
    failures = (
        TaskFailure(raised="ValueError: my bug", place="pages.py:7", count=30),
        TaskFailure(raised="KeyError: 'x'", place=None, count=2),
    )
    verdict = judged(pages(tmp_path, [5]), task_failures=failures)
    (judgement,) = verdict.judgements
    assert (verdict.outcome, verdict.exit_code, judgement.measured) == ("fail", 1, 32)
    assert judgement.says.startswith(
        "32 raised, first ValueError: my bug at pages.py:7, and 1 other"
    )


def late(
    folder: Path, lag_ns: int, loop: str, own_ns: int = 10**6, count: int = 30
) -> tuple[RunRecord, RunWriter]:
    """Pages that took as long each, from their start, and began late."""
    writer = RunWriter(folder)
    for part, ns in (("", own_ns + lag_ns), (".service", own_ns), (".lag", lag_ns)):
        writer.record(f"0/0/measured/page/transaction{part}/ok/expected", [ns] * count)
    return load_run(writer.write(make_run(load=make_load(loop=loop)))), writer


@pytest.mark.parametrize(
    ("loop", "outcome", "warnings"), [("closed", "inconclusive", 1), ("open", "fail", 0)]
)
def test_a_limit_that_a_late_client_alone_misses_proves_nothing(
    tmp_path: Path, loop: str, outcome: str, warnings: int
) -> None:
    record, writer = late(tmp_path, 4 * 10**6, loop)
    verdict = judged(writer, "page.p95 < 2ms", load=record.run.load)
    assert verdict.judgements[0].outcome == outcome, verdict
    says = "5.00 ms: missed as users were woken late by this client; from the start of each it is"
    assert (f"{says} 1.00 ms" == verdict.judgements[0].says) is (loop == "closed")
    assert judged(writer, "page.p95 < 500us", load=record.run.load).outcome == "fail"
    found = [*pacing_warnings(record.run.load, summarise(record), None)]
    assert len(found) == warnings
    if found:
        assert found[0].kind == "begun late"
        assert "page on local started 4.00 ms late on average (80 %" in found[0].message


def test_a_little_lag_of_a_closed_loop_is_not_worth_a_word(tmp_path: Path) -> None:
    record, _ = late(tmp_path, 10**5, "closed")
    assert not [*pacing_warnings(record.run.load, summarise(record), None)]


@pytest.mark.parametrize(
    ("lag_us", "count", "warnings"), [(150, 30, 0), (300, 30, 1), (3000, 9, 0)]
)
def test_what_waking_a_cpu_takes_and_a_few_late_ones_are_not_worth_a_word(
    tmp_path: Path, lag_us: int, count: int, warnings: int
) -> None:
    record, _ = late(tmp_path, 1000 * lag_us, "closed", own_ns=80_000, count=count)
    assert len([*pacing_warnings(record.run.load, summarise(record), None)]) == warnings
