"""Steps with which users wait for each other: what they compile to, and what is refused."""

from typing import Any

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import parse_scenario

TEXT = """\
name: waiting
users: {count: 2}
iterations: 1
datasets: {shared: {directory: true}}
mix: {make: 1}
roles: {maker: {users: 1, mix: {make: 1}}, watcher: {users: 1, mix: {see: 1}}}
transactions:
  make:
    - await: asked
    - open: {in: shared, name: "new-{seq}", flags: [wronly, create]}
    - close
    - signal: made
  see:
    - stat: {in: shared, name: "new-{seq}", expect: ENOENT}
    - signal: asked
    - until: {since: made, every: 10ms, limit: 2s, steps: [stat: file]}
"""
AWAITED = "    - await: asked\n"
SINCE = "since: made, "


def compiled(text: str = TEXT) -> list[list[dict[str, Any]]]:
    body = compile_plan(parse_scenario(text, "s.yaml")).body
    return [transaction["steps"] for transaction in body["transactions"]]


def test_signals_get_numbers_and_times_get_defaults() -> None:
    make, see = compiled()
    wait = {"do": "await", "signal": 0, "limit": {"const": 60_000_000_000}, "expect": ["ok"]}
    assert make[0] == wait
    assert make[-1] == {"do": "signal", "signal": 1}
    assert see[-2] == {"do": "signal", "signal": 0}
    look = {"do": "call", "op": "stat", "path": 0, "expect": ["ok"]}
    times = {"every": {"const": 10_000_000}, "limit": {"const": 2_000_000_000}}
    assert see[-1] == {"do": "until", "steps": [look], **times, "since": 1, "expect": ["ok"]}


@pytest.mark.parametrize(
    ("gone", "keeps"),
    [((), True), ((AWAITED,), True), ((SINCE,), True), ((AWAITED, SINCE), False)],
)
def test_a_plan_knows_whether_its_users_wait_for_each_other(
    gone: tuple[str, ...], *, keeps: bool
) -> None:
    text = TEXT
    for each in gone:
        text = text.replace(each, "")
    assert compile_plan(parse_scenario(text, "s.yaml")).keeps_step is keeps


def test_a_wait_counts_as_an_op_and_a_look_as_one_call() -> None:
    summary = describe_plan(compile_plan(parse_scenario(TEXT, "s.yaml")))
    ops = {found.name: dict(found.ops) for found in summary.transactions}
    assert ops == {
        "make": {"await": 1, "open": 1, "close": 1},
        "see": {"stat": 2, "until": 1},
    }


def test_what_a_look_opens_is_open_after_it() -> None:
    looks = "[open: file, {read: {until: end}}]"
    _make, see = compiled(TEXT.replace("[stat: file]", f"{looks}}}\n    - close: file\n#"))
    assert [step.get("op") for step in see[-1:]] == ["close"]


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("since: made", "since: mede", "waits for mede, a signal that no step sends"),
        ("await: asked", "await: aksed", "waits for aksed, a signal that no step sends"),
        ("[stat: file]", "[think: 1ms]", "must hold only lookups of names .* got think"),
        ("[stat: file]", "[{write: {size: 1B}}]", "must hold only lookups of names .* got write"),
        ("[stat: file]", "[{stat: {from: shared}}]", "got stat of a picked entry"),
        ("[stat: file]", "[]", "steps"),
        ("limit: 2s, ", "", "limit"),
        ("[stat: file]", "[stat: fiel]", "uses the name fiel"),
    ],
)
def test_what_makes_no_sense_is_refused(old: str, new: str, refusal: str) -> None:
    with pytest.raises(ScenarioError, match=refusal):
        compile_plan(parse_scenario(TEXT.replace(old, new), "s.yaml"))


def test_more_signals_than_a_plan_has_are_refused() -> None:
    many = "".join(f"    - signal: s{number}\n" for number in range(15))
    with pytest.raises(ScenarioError, match="must give at most 16 signals, got 17"):
        parse_scenario(TEXT + many, "s.yaml")
