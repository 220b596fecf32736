from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.errors import ReplayerError
from replayer.verdict.threshold import (
    Metric,
    Names,
    Subject,
    check_names,
    parse_threshold,
    with_default,
)


def p(percent: float) -> Metric:
    return Metric("percentile", percent=percent)


NAMES = Names(
    targets=("local", "nfs"), transactions=("page_view", "login"), ops=("open", "read", "fsync")
)


@pytest.mark.parametrize(
    ("text", "subject", "metric", "limit", "unit"),
    [
        ("page_view.p95 < 200ms", Subject("page_view"), p(95), 2e8, "ns"),
        ("page_view.p99.9<=1.5s", Subject("page_view"), p(99.9), 1.5e9, "ns"),
        ("open.p99 <= 5 ms", Subject("open"), p(99), 5e6, "ns"),
        ("front/open.p95 < 3ms", Subject("front", "open"), p(95), 3e6, "ns"),
        ("page_view.max < 1h", Subject("page_view"), Metric("max"), 3.6e12, "ns"),
        ("page_view.lag.max < 1s", Subject("page_view"), Metric("max", "lag"), 1e9, "ns"),
        ("login.service.mean < 70µs", Subject("login"), Metric("mean", "service"), 7e4, "ns"),
        ("page_view.errors == 0", Subject("page_view"), Metric("errors"), 0, "count"),
        ("errors == 0", None, Metric("errors"), 0, "count"),
        ("errors < 0.5%", None, Metric("errors"), 0.005, "share"),
        ("rate >= 100/s", None, Metric("rate"), 100, "per_s"),
        ("login.throughput > 600/min", Subject("login"), Metric("throughput"), 10, "per_s"),
        ("read.bytes >= 50MB/s", Subject("read"), Metric("bytes"), 5e7, "bytes_per_s"),
        ("bytes >= 1MiB/s", None, Metric("bytes"), 1048576, "bytes_per_s"),
        ("cliff == 0", None, Metric("cliff"), 0, "count"),
        ("login.cliff <= 1", Subject("login"), Metric("cliff"), 1, "count"),
        ("page_view.drift < 10%", Subject("page_view"), Metric("drift"), 0.1, "share"),
    ],
)  # fmt: skip
def test_thresholds_mean_what_they_say(
    text: str, subject: Subject | None, metric: Metric, limit: float, unit: str
) -> None:
    found = parse_threshold(text, "--threshold")
    assert (found.subject, found.metric, found.unit, found.target) == (subject, metric, unit, None)
    assert found.limit == pytest.approx(limit)


def test_a_target_stands_before_a_colon() -> None:
    found = parse_threshold("nfs:page_view.p95 < 1s", "--threshold")
    assert (found.target, found.subject) == ("nfs", Subject("page_view"))


@pytest.mark.parametrize(
    ("text", "column", "problem", "hint"),
    [
        ("", 1, "what is compared is missing", "page_view.p95"),
        ("page_view.p95", 14, "a comparison must follow, got 'the end'", "<="),
        ("page_view.p95 ~ 3ms", 15, "a comparison must follow, got '~'", "<="),
        ("page_view.p95 <", 16, "a limit must follow, got 'nothing'", "200ms"),
        ("page_view.p95 < 200", 17, "has a unit, got '200'", "ns, us"),
        ("page_view.p95 < 200 parsecs", 17, "has no unit 'parsecs', got", "200ms"),
        ("page_view.p95 < -2ms", 17, "a limit must follow, got '-2ms'", "200ms"),
        ("page_view.p101 < 2ms", 11, "a percentile lies between 0 and 100, got p101", "p95"),
        ("page_view.eror == 0", 11, "no metric 'eror'", "did you mean 'errors'"),
        ("p95 < 2ms", 1, "p95 of what?", "page_view.p95"),
        ("errors == 0.5", 11, "errors are a count or a share", "errors < 1%"),
        ("rate > 100", 8, "a limit of rate has a unit, got '100'", "100/s"),
        ("rate > 100/d", 8, "a limit of rate has no unit '/d', got '100/d'", "/min, /m, /h"),
        ("page_view.lag.errors == 0", 15, "lag is a time, errors is none", "errors alone"),
        ("page_view/.p95 < 1s", 1, "half a name", "TRANSACTION/OP"),
        ("cliff == 1", 7, "cliff has an upper limit, got '=='", "cliff <= 1"),
        ("cliff < 1%", 9, "cliffs are a count", "cliff == 0"),
        ("drift > 10%", 7, "drift has an upper limit, got '>'", "drift < 10%"),
        ("drift < 0.1", 9, "a limit of drift has a unit, got '0.1'", "for example 10%"),
        ("login.lag.drift < 1%", 11, "lag is a time, drift is none", "drift alone"),
        (f"errors < {'9' * 400}", 10, "must be 1,000,000,000,000,000,000 or less", "200ms"),
    ],
)
def test_a_refusal_names_the_place_and_the_way_out(
    text: str, column: int, problem: str, hint: str
) -> None:
    with pytest.raises(ReplayerError) as refusal:
        parse_threshold(text, "scenarios/office.yaml:31")
    assert str(refusal.value).startswith(
        f"scenarios/office.yaml:31: threshold {text!r}, column {column}: "
    )
    assert problem in str(refusal.value)
    assert hint in refusal.value.hint


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_and_never_crashes(text: str) -> None:
    with suppress(ReplayerError):
        assert parse_threshold(text, "--threshold").text == text.strip()


@given(
    st.sampled_from(["page_view", "open", "page_view/open"]),
    st.sampled_from(["p50", "p95", "p99.9", "mean", "max"]),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.integers(0, 10**6),
)
def test_blanks_do_not_matter(subject: str, metric: str, sign: str, limit: int) -> None:
    tight = parse_threshold(f"{subject}.{metric}{sign}{limit}us", "x")
    loose = parse_threshold(f"  {subject}.{metric}  {sign}  {limit} us ", "x")
    assert (tight.subject, tight.metric, tight.limit) == (loose.subject, loose.metric, loose.limit)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("page_veiw.p95 < 1s", "column 1: no transaction or op 'page_veiw'", "'page_view'"),
        ("efs:page_view.p95 < 1s", "no target 'efs'", "'nfs'"),
        ("login/opne.p95 < 1s", "column 7: no op 'opne'", "'open'"),
        ("open.lag.p95 < 1s", "an op has no lag time of its own", "leave it out"),
        ("open.cliff == 0", "column 1: cliff is not judged of an op", "or cliff alone"),
        ("login/open.drift < 1%", "drift is not judged of an op", "name a transaction"),
    ],
)
def test_names_that_a_run_will_not_have_are_refused(text: str, problem: str, hint: str) -> None:
    with pytest.raises(ReplayerError, match=problem) as refusal:
        check_names([parse_threshold(text, "--threshold")], NAMES)
    assert hint in refusal.value.hint


def test_where_tasks_name_their_transactions_any_name_may_come_and_targets_are_known() -> None:
    names = Names(targets=("local",), transactions=None, ops=())
    texts = ["save.p95 < 1s", "save/open.p95 < 1s", "fsync.max < 1s", "save.lag.p99 < 1s"]
    check_names([parse_threshold(text, "--threshold") for text in texts], names)
    with pytest.raises(ReplayerError, match="no target 'lokal'"):
        check_names([parse_threshold("lokal:save.p95 < 1s", "--threshold")], names)


def test_names_that_a_run_has_pass() -> None:
    texts = ["nfs:login/open.p95 < 1s", "fsync.max < 1s", "errors == 0", "login.lag.p99 < 1s"]
    check_names([parse_threshold(text, "--threshold") for text in texts], NAMES)


@given(st.integers(0, 10**6))
def test_a_limit_is_the_number_nearest_to_what_was_written(thousandths: int) -> None:
    written = f"{thousandths // 1000}.{thousandths % 1000:03}"
    assert parse_threshold(f"page.p95 < {written}ms", "x").limit == thousandths * 1000
    assert parse_threshold(f"rate < {written}/min", "x").limit == thousandths / 60_000
    assert parse_threshold(f"errors < {written}%", "x").limit == thousandths / 100_000


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], True),
        (["page_view.p95 < 1s"], True),
        (["errors < 5%"], False),
        (["login.errors == 3"], True),
        (["nfs:errors < 5%"], True),
        (["nfs:errors < 5%", "errors < 1%"], False),
    ],
)
def test_no_errors_is_the_default_where_no_threshold_is_about_all_errors(
    given: list[str], *, added: bool
) -> None:
    stated = [(text, "--threshold") for text in given]
    assert list(with_default(stated)) == [*stated, *[("errors == 0", "default")] * added]
