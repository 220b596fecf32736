"""Plans are pure and seeded: same scenario and seed, same bytes; engines accept each of them."""

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer import _native
from replayer.plan.compile import compile_plan
from replayer.plan.document import Plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import load_scenario, parse_scenario
from replayer.scenario.model import MAX_USERS, Scenario
from replayer.scenario.shipped import shipped_scenarios
from tests.unit.plan.written import scenarios
from tests.unit.scenario.texts import SMALL, changed

GOLDEN = Path(__file__).parents[2] / "golden" / "fingerprints.json"
NAMES = sorted(shipped_scenarios())


@cache
def shipped(name: str) -> Plan:
    return compile_plan(load_scenario(name))


def small(old: str = "name: small", new: str = "name: small") -> dict[str, Any]:
    """Return the plan of the small scenario, changed in one place."""
    found: dict[str, Any] = dict(compile_plan(parse_scenario(changed(old, new), "s.yaml")).body)
    return found


def steps(body: dict[str, Any], transaction: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body["transactions"][transaction]["steps"]
    return found


@given(scenarios())
def test_the_same_scenario_and_seed_give_the_same_bytes(scenario: Scenario) -> None:
    assert compile_plan(scenario).document() == compile_plan(scenario).document()


@given(scenarios(), st.integers(0, 2**64 - 1))
def test_another_seed_gives_another_fingerprint(scenario: Scenario, seed: int) -> None:
    one, other = compile_plan(scenario), compile_plan(scenario, seed=seed)
    assert (one.fingerprint == other.fingerprint) == (scenario.seed == seed)


@given(scenarios(), st.integers(0, 2**64 - 1))
def test_other_draws_leave_the_files_as_they_are(scenario: Scenario, draws: int) -> None:
    other = compile_plan(scenario.model_copy(update={"draws": draws})).body
    assert other == {**compile_plan(scenario).body, "draws": draws}


@given(scenarios())
def test_the_native_engine_accepts_every_plan(scenario: Scenario) -> None:
    plan = compile_plan(scenario)
    native = _native.Plan(plan.document())
    assert native.transactions == plan.transactions
    assert native.datasets == plan.datasets


@given(scenarios())
def test_the_document_is_canonical_and_holds_only_integers(scenario: Scenario) -> None:
    document = compile_plan(scenario).document()
    again = json.dumps(
        json.loads(document, parse_float=pytest.fail),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    assert again.encode() == document
    assert compile_plan(scenario).fingerprint == hashlib.sha256(document).hexdigest()


@pytest.fixture(scope="module")
def fingerprints() -> dict[str, str]:
    """Fingerprints of all shipped scenarios, blessed anew when asked to."""
    found = {name: shipped(name).fingerprint for name in NAMES}
    if os.environ.get("REPLAYER_BLESS") == "1":
        GOLDEN.write_text(json.dumps(found, indent=2) + "\n")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_keeps_its_fingerprint(name: str, fingerprints: dict[str, str]) -> None:
    golden = json.loads(GOLDEN.read_text())
    assert name in golden, "a new scenario: look at it, then `just bless tests/unit/plan`"
    assert fingerprints[name] == golden[name]


def test_no_golden_is_left_of_a_scenario_that_is_gone() -> None:
    assert sorted(json.loads(GOLDEN.read_text())) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_native_engine_accepts_a_shipped_scenario(name: str) -> None:
    plan = shipped(name)
    traces = [str(trace.folder) for trace in plan.traces]
    assert _native.Plan(plan.document(), traces).transactions == plan.transactions


def test_what_is_given_stands_before_what_the_scenario_says() -> None:
    scenario = parse_scenario(SMALL, "s.yaml")
    plan = compile_plan(scenario, users=7, seed=9, duration_ns=5, transactions=3)
    assert (plan.users, plan.seed, plan.duration_ns, plan.transactions_per_user) == (7, 9, 5, 3)
    plain = compile_plan(scenario)
    assert (plain.users, plain.seed, plain.duration_ns) == (2, 1, 2_000_000_000)


@pytest.mark.parametrize("users", [0, MAX_USERS + 1])
def test_no_users_and_too_many_are_refused(users: int) -> None:
    with pytest.raises(ScenarioError, match=f"users must be from 1 to 1,000,000, got {users:,}"):
        compile_plan(parse_scenario(SMALL, "s.yaml"), users=users)


def test_as_many_workers_as_there_are_sessions_may_have_their_own() -> None:
    assert compile_plan(load_scenario("php-sessions"), users=500).users == 500


def test_fewer_users_than_the_roles_have_are_refused() -> None:
    text = changed("mix:", "roles: {maker: {users: 2, mix: {make: 1}}}\nmix:")
    scenario = parse_scenario(text, "s.yaml")
    assert compile_plan(scenario).body["roles"] == [[2, [0, 1]]]
    with pytest.raises(ScenarioError, match="at least 2, as many as the roles have, got 1"):
        compile_plan(scenario, users=1)


def test_reads_of_files_that_nobody_changes_are_checked() -> None:
    assert steps(small())[2]["check_size"] is True


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('in: work, name: "f{seq}"', 'in: files, name: "d0/f{seq}"'),
        ("    - close\n  make", "    - close\n    - unlink: file\n  make"),
        ("    - close\n  make", "    - close\n    - truncate: {size: 1B}\n  make"),
        ("    - close\n  make", "    - rename: {path: file, to: {in: work, name: x}}\n  make"),
        ("    - read", "    - lseek: {offset: 5B}\n    - read"),
        ("    - read", "    - read\n    - read"),
        ("    - read: {size: 64KiB, until: end}", "    - read: {size: 64KiB}"),
    ],
)
def test_reads_whose_length_cannot_be_known_are_not_checked(old: str, new: str) -> None:
    reads = [step for step in steps(small(old, new)) if step.get("op") == "read"]
    assert [step["check_size"] for step in reads[-1:]] == [False]


def test_a_name_that_is_an_entry_has_its_size() -> None:
    body = small("from: files, pick: uniform", "in: files, name: d0/f3")
    (picker,) = body["pickers"]
    assert picker["segments"][0][1:] == [5, 1]  # after the directories d0 and d1
    assert body["datasets"][0]["entries"][5][0] == "d0/f3"
    assert steps(body)[2]["check_size"] is True


def test_layout_becomes_what_the_dataset_holds() -> None:
    text = changed("    - close\n  make", "    - close\n    - use: probe\n  make").replace(
        "mix:",
        "sequences:\n  probe:\n    - for: {in: files, names: [d0/f0, d0/no, .],"
        " steps: [{access: {expect: layout}}]}\nmix:",
    )
    body = compile_plan(parse_scenario(text, "s.yaml")).body
    calls = [step for step in steps(dict(body)) if step.get("op") == "access"]
    assert [call["expect"] for call in calls] == [["ok"], ["ENOENT"], ["ok"]]


def test_layout_follows_links_of_the_dataset() -> None:
    text = changed(
        "per_directory: 5}", "per_directory: 5, under: r/0, links: {now: r/0, r/up: ../r}}"
    ).replace("from: files, pick: uniform", "in: files, name: now/d0/f0, expect: layout")
    assert steps(dict(compile_plan(parse_scenario(text, "s.yaml")).body))[1]["expect"] == ["ok"]
    other = text.replace("now/d0/f0", "r/up/0/d0/f99")
    assert steps(dict(compile_plan(parse_scenario(other, "s.yaml")).body))[1]["expect"] == [
        "ENOENT"
    ]


def test_the_pool_is_large_enough_for_the_largest_write() -> None:
    body = small("{lognormal: {median: 300B, p95: 4KiB}}}", "{uniform: [1B, 9MiB]}, block: 16MiB}")
    assert body["pool_bytes"] % 8 == 0
    assert body["pool_bytes"] >= 9 * 1024 * 1024 + 4096


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{count: 2}", "closed"),
        ("{count: 2, every: 1s}", "every"),
        ("{count: 2}\narrivals: {rate: 50/s}", "arrivals"),
        ("{count: 2}\narrivals: {rate: 50/s, process: even}", "arrivals"),
    ],
)
def test_each_way_of_pacing_has_its_pace(text: str, kind: str) -> None:
    body = small("{count: 2}", text)
    assert body["pace"]["kind"] == kind
    if "even" in text:
        assert body["pace"]["gap"] == {"const": 20_000_000}
    if text.endswith("50/s}"):
        table = body["tables"][body["pace"]["gap"]["table"]]
        assert sum(table) == 20_000_000 * len(table)


def test_plans_are_equal_when_their_bodies_are() -> None:
    scenario = parse_scenario(SMALL, "s.yaml")
    assert compile_plan(scenario) == compile_plan(scenario) != Plan({})
