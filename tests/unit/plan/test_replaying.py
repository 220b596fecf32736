"""Plans of replays are pure, goldens hold their documents, and what cannot be meant is refused."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.errors import ReplayerError
from replayer.plan.document import Plan
from replayer.plan.replaying import ReplayOptions, choose_requests, compile_replay
from replayer.plan.summary import describe_plan
from replayer.trace.facts import TraceFacts, load_facts
from replayer.trace.importing import ImportOptions, import_trace

GOLDEN = Path(__file__).parents[2] / "golden" / "replays.json"
SITE = TraceFacts(
    name="mine/My Site",
    folder=Path("/nowhere/My Site"),
    sha256="0123456789abcdef" * 4,
    events=1000,
    threads=3,
    span_ns=2_000_000_000,
    requests={"/": 30, "login POST": 10, "login-post": 0},
)
OPTIONS = {
    "whole": ReplayOptions(),
    "asap loops": ReplayOptions(pace="asap", loops=5, users=4),
    "timed fast": ReplayOptions(pace="timed", speed=2.5, duration_ns=10**9),
    "requests": ReplayOptions(requests={"/": 30, "login POST": 10}, users=2, seed=7),
    "open": ReplayOptions(pace="open", requests={"/": 3, "login POST": 1}, rate=50.0, speed=0.5),
}


def shown(plan: Plan) -> dict[str, Any]:
    """Return a plan's document, with its tables by length and mean: the rest tells by itself."""
    tables = [[len(row), sum(row) // len(row)] for row in plan.body["tables"]]
    return {**plan.body, "tables": tables}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_replay_has_the_plan_that_was_approved(name: str) -> None:
    plan = compile_replay(SITE, OPTIONS[name])
    approved = json.loads(GOLDEN.read_text())
    if os.environ.get("REPLAYER_BLESS") == "1":
        approved[name] = {"fingerprint": plan.fingerprint, "document": shown(plan)}
        GOLDEN.write_text(json.dumps(approved, indent=1) + "\n")
    assert approved[name]["document"] == shown(plan)
    assert approved[name]["fingerprint"] == plan.fingerprint


@given(st.sampled_from(list(OPTIONS.values())), st.integers(0, 2**64 - 1), st.integers(1, 100))
def test_the_same_options_give_the_same_bytes(
    options: ReplayOptions, seed: int, users: int
) -> None:
    changed = replace(options, seed=seed, users=users)
    one, other = compile_replay(SITE, changed), compile_replay(SITE, changed)
    assert one.document() == other.document()
    assert (one.seed, one.users, one.traces) == (seed, users, (SITE,))


DATABASE = """\
1 openat(AT_FDCWD, "/r/db", O_RDWR) = 3
1 pwrite64(3, "x"..., 4096, 0) = 4096
1 close(3) = 0
1 openat(AT_FDCWD, "/r/manual", O_RDONLY) = 3
1 read(3, "x"..., 4096) = 4096
"""
GIB = 1 << 30


def test_each_user_needs_room_for_its_own_files_and_all_for_those_they_share(
    tmp_path: Path,
) -> None:
    (tmp_path / "log").write_text(DATABASE)
    files = {"db": 10 * GIB, "manual": GIB}
    rows = [".\td\t0\t755\t", *(f"{name}\tf\t{size}\t644\t" for name, size in files.items())]
    (tmp_path / "tree.tsv").write_text("\n".join(["path\ttype\tsize\tmode\tlink", *rows, ""]))
    known = ImportOptions(roots=[Path("/r")], format="strace", manifest=tmp_path / "tree.tsv")
    import_trace([tmp_path / "log"], tmp_path / "trace", known)
    trace = load_facts(str(tmp_path / "trace"), tmp_path)
    for users in (1, 16):
        found = describe_plan(compile_replay(trace, ReplayOptions(users=users)))
        assert 0 <= found.space_bytes - users * 10 * GIB - GIB < users * 100_000


@given(st.floats(0.01, 10_000))
def test_speed_becomes_whole_per_cent_within_the_bounds_of_the_format(speed: float) -> None:
    plan = compile_replay(SITE, ReplayOptions(speed=speed))
    (step,) = plan.body["transactions"][0]["steps"]
    assert isinstance(step["speed_percent"], int)
    assert 1 <= step["speed_percent"] <= 1_000_000
    assert abs(step["speed_percent"] - 100 * speed) <= 0.5


def test_one_loop_of_requests_is_as_many_as_were_recorded() -> None:
    chosen = choose_requests(SITE, [])
    assert compile_replay(SITE, ReplayOptions(requests=chosen)).transactions_per_user == 40
    front = choose_requests(SITE, ["/=1", "login POST=0"])
    assert compile_replay(SITE, ReplayOptions(requests=front, loops=2)).transactions_per_user == 60


def test_time_alone_ends_a_replay_that_has_no_loops() -> None:
    plan = compile_replay(SITE, ReplayOptions(duration_ns=5))
    assert (plan.duration_ns, plan.transactions_per_user) == (5, None)


def test_arrivals_come_as_often_as_recorded_times_the_speed() -> None:
    options = ReplayOptions(pace="open", requests=choose_requests(SITE, []), speed=2)
    plan = compile_replay(SITE, options)
    table = plan.body["tables"][plan.body["pace"]["gap"]["table"]]
    assert sum(table) == len(table) * 1e9 / 40  # 40 requests in 2 s, twice as fast
    assert plan.users == SITE.threads


def test_requests_are_named_by_label_or_by_the_name_of_their_transaction() -> None:
    assert choose_requests(SITE, []) == SITE.requests
    assert choose_requests(SITE, ["/"]) == {"/": 30}
    assert choose_requests(SITE, ["login POST=3", "root=1"]) == {"login POST": 3, "/": 1}
    equals = replace(SITE, requests={"a=1": 4, "a": 5})
    assert choose_requests(equals, ["a=1"]) == {"a=1": 4}


def test_transactions_are_named_apart() -> None:
    plan = compile_replay(SITE, ReplayOptions(requests=choose_requests(SITE, [])))
    assert plan.transactions == ("root", "login-post", "login-post-2")


@pytest.mark.parametrize(
    ("options", "says", "hint"),
    [
        (ReplayOptions(pace="open"), "--pace open needs requests", "--requests"),
        (ReplayOptions(pace="timed", requests={"/": 1}), "excludes --requests", "closed"),
        (ReplayOptions(rate=5.0), "arrivals of --pace open, but the pace is closed", "--pace open"),
        (ReplayOptions(pace="asap", speed=2), "--pace asap has no gaps", "leave --speed out"),
        (ReplayOptions(speed=0.001), "must be from 0.01 to 10000, got 0.001", "twice as fast"),
        (ReplayOptions(speed=1e6), "must be from 0.01 to 10000, got 1000000.0", "twice as fast"),
        (ReplayOptions(users=0), "-u must be from 1 to 1,000,000, got 0", ""),
        (ReplayOptions(users=1_000_001), "-u must be from 1 to 1,000,000, got 1,000,001", ""),
    ],
)
def test_what_cannot_be_meant_is_refused(options: ReplayOptions, says: str, hint: str) -> None:
    with pytest.raises(ReplayerError, match=says) as told:
        compile_replay(SITE, options)
    assert hint in told.value.hint


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(ReplayerError, match="holds no events"):
        compile_replay(replace(SITE, events=0), ReplayOptions())


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (["logn POST"], "no request 'logn POST'", "did you mean login POST?"),
        (["logn-post=3"], "no request 'logn-post'", "did you mean login-post"),
        (["/=much"], "a weight must be a whole number", "for example /=3"),
        (["/=0"], "at least one weight must be more than 0", ""),
    ],
)
def test_requests_that_the_trace_has_not_are_refused(
    words: list[str], says: str, hint: str
) -> None:
    with pytest.raises(ReplayerError, match=says) as told:
        choose_requests(SITE, words)
    assert hint in told.value.hint


def test_a_trace_without_requests_has_none_to_choose() -> None:
    with pytest.raises(ReplayerError, match="the trace has no requests"):
        choose_requests(replace(SITE, requests={}), [])
