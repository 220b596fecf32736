"""Users whose run folder lets nobody in: their work fails, until somebody lets them in again."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replayer._native import confinement
from tests.behaviour.shell import ORDINARY, needs_setpriv
from tests.unit.engine.drafts import Drafts

pytestmark = [
    needs_setpriv,
    pytest.mark.skipif(confinement() != "jailed", reason="only a jail has to be entered"),
]

PREPARED = """
import json, os, sys, time
from replayer._native import Engine, Plan, Sandbox

home = sys.argv[2]
sandboxes = [Sandbox.create(f"{home}/{name}", "test", "{}") for name in "ab"]
engine = Engine(
    Plan(sys.argv[1].encode()), [[sandbox] for sandbox in sandboxes], record=f"{home}/record"
)

def let_in(target, allowed):
    os.chmod(sandboxes[target].path, 0o700 if allowed else 0)

def play(target, round, meanwhile=lambda: None):
    engine.begin_segment(target, round, 0, 200_000_000)
    time.sleep(0.1)
    meanwhile()
    time.sleep(0.2)
    assert engine.end_segment(1_000_000_000) == []

def tell():
    engine.close()
    print(json.dumps([
        (row.target, row.round, row.op, row.outcome, row.expected, row.histogram.count)
        for row in engine.totals()
    ]))
"""

TURNS = """
for user in range(2):
    engine.start_user(user)
play(0, 0)
let_in(0, False)
play(1, 0)
play(0, 1)
play(1, 1, lambda: let_in(0, True))
play(0, 2)
assert engine.running_users() == 2
tell()
"""

BACK = """
engine.start_user(0)
let_in(0, False)
play(0, 0, lambda: let_in(0, True))
tell()
"""

ORDERS = """
def ask(**command):
    ticket = engine.submit(9, json.dumps(command).encode())
    while not (answers := engine.drain_outcomes()):
        time.sleep(0.001)
    (answer,) = answers
    assert answer.ticket == ticket
    return answer.outcome

let_in(0, False)
engine.start_interactive(9, 0)
look = {"do": "call", "op": "stat", "path": ".replayer-run", "expect": ["ok"]}
told = [ask(begin="visit"), ask(**look), ask(end="visit", failed=True), ask(**look)]
let_in(0, True)
told += [ask(**look), ask(begin="visit"), ask(**look), ask(end="visit", failed=False)]
assert told == ["ok", "EACCES", "ok", "EACCES", "ok", "ok", "ok", "ok"], told
tell()
"""


def play(home: Path, plan: dict[str, Any], script: str) -> Counter[tuple[int, int, str, str]]:
    """Have a user who is nobody special play; the counts by target, round, op and outcome."""
    for name in ("a", "b", "record"):
        (home / name).mkdir()
    done = subprocess.run(
        [*ORDINARY, sys.executable, "-c", PREPARED + script, json.dumps(plan), str(home)],
        check=True,
        stdout=subprocess.PIPE,
        timeout=60,
    )
    counts: Counter[tuple[int, int, str, str]] = Counter()
    for target, turn, op, outcome, expected, count in json.loads(done.stdout):
        assert expected == (outcome not in {"EACCES", "failed"})
        counts[target, turn, op, outcome] += count
    return counts


def looks(drafts: Drafts, **changes: object) -> dict[str, Any]:
    steps = [
        {"do": "bind", "slot": 0, "name": {"dataset": 0, "parts": ["x"]}},
        drafts.call("access", path=0, mode=0, expect=("ok", "ENOENT")),
    ]
    pace = {"kind": "closed", "think": {"const": 10_000_000}}
    stop = {"duration_ns": None, "transactions": None}
    return drafts.document(steps, users=2, pace=pace, stop=stop) | changes


def test_a_user_that_is_not_let_in_fails_its_transactions_and_works_in_other_turns(
    drafts: Drafts, tmp_path: Path
) -> None:
    found = play(tmp_path, looks(drafts), TURNS)
    for turn in ((0, 0), (1, 0), (1, 1), (0, 2)):
        assert found[*turn, "transaction", "ok"] > 10
        assert (*turn, "transaction", "failed") not in found
    assert (0, 1, "transaction", "ok") not in found
    assert found[0, 1, "chdir", "EACCES"] == found[0, 1, "transaction", "failed"] > 10
    events = (tmp_path / "record/events.jsonl").read_text().splitlines()
    (first, *_) = [event for event in map(json.loads, events) if event["kind"] == "error"]
    assert (first["op"], first["path"], first["outcome"]) == ("chdir", ".", "EACCES")
    assert (first["transaction"], first["target"]) == ("work", 0)


def test_it_works_in_the_same_turn_as_soon_as_it_is_let_in(drafts: Drafts, tmp_path: Path) -> None:
    found = play(tmp_path, looks(drafts), BACK)
    assert found[0, 0, "transaction", "failed"] > 2
    assert found[0, 0, "transaction", "ok"] > 2


def test_transactions_that_are_counted_fail_one_by_one(drafts: Drafts, tmp_path: Path) -> None:
    plan = looks(drafts, stop={"duration_ns": None, "transactions": 3})
    found = play(tmp_path, plan, "engine.start_user(0)\nlet_in(0, False)\nplay(0, 0)\ntell()\n")
    assert found[0, 0, "transaction", "failed"] == 3


def test_a_user_without_think_time_pauses_between_tries(drafts: Drafts, tmp_path: Path) -> None:
    plan = looks(drafts, pace={"kind": "closed", "think": {"const": 0}})
    found = play(tmp_path, plan, "engine.start_user(0)\nlet_in(0, False)\nplay(0, 0)\ntell()\n")
    assert 2 < found[0, 0, "transaction", "failed"] <= 31  # 10 ms apart for 300 ms at the most


def test_orders_are_answered_with_what_keeps_the_user_out(drafts: Drafts, tmp_path: Path) -> None:
    found = play(tmp_path, looks(drafts), ORDERS)
    assert found[0, 0, "chdir", "EACCES"] == 2
    assert found[0, 0, "stat", "ok"] == 2
