"""Stages of a pipeline: side by side, an entry after the other, and together when one fails."""

from pathlib import Path
from typing import Any

import pytest

from replayer._native import Engine, Plan, Sandbox
from tests.unit.engine.drafts import Drafts, Make, Until, outcomes

Step = dict[str, Any]

SECOND = 1_000_000_000
FILES = 200
ENTRY = 0
ENTRIES = [[f"f{number:03}", "f", 100, 0o644, ""] for number in range(FILES)]
AFTER_A_DIRECTORY = [["d", "d", 0, 0o755, ""], ["f", "f", 100, 0o644, ""]]


def stage(files: list[Step], directories: list[Step] | None = None) -> Step:
    """Go through the entries of the only dataset."""
    what = {"dataset": 0, "slot": ENTRY, "reverse": False}
    return {"do": "each", **what, "f": files, "d": directories or [], "l": []}


def pipeline(*stages: Step) -> Step:
    return {"do": "pipeline", "steps": list(stages)}


def plan_of(drafts: Drafts, entries: list[list[Any]], *steps: Step, **changes: object) -> Plan:
    (files,) = drafts.document([])["datasets"]
    datasets = [files | {"entries": entries}]
    return drafts.plan(list(steps), datasets=datasets, pickers=[], **changes)


def run(plan: Plan, make: Make, sandbox: Sandbox, until: Until) -> Engine:
    sandbox.lay_out(plan, 1).result()
    engine = make(plan, sandbox)
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    until(lambda: engine.busy_users() == 0)
    assert engine.end_segment(0) == []
    return engine


def named(drafts: Drafts, slot: int, suffix: str) -> Step:
    return drafts.name(slot, {"path_of": ENTRY}, suffix)


def test_a_stage_finds_what_the_one_before_has_done_with_the_entry(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    first = [named(drafts, 1, ".a"), drafts.open_new(1), drafts.call("close", file=1)]
    second = [
        *(named(drafts, 1, ".a"), named(drafts, 2, ".b")),
        drafts.call("rename", path=1, to=2, flags=0),
    ]
    third = [named(drafts, 2, ".b"), drafts.call("unlink", path=2)]
    plan = plan_of(drafts, ENTRIES, pipeline(stage(first), stage(second), stage(third)))
    engine = run(plan, make, sandbox, until)
    assert outcomes(engine, "transaction") == {"ok": 1}
    for op in ("open", "close", "rename", "unlink"):
        assert outcomes(engine, op) == {"ok": FILES}
    assert len(list((Path(sandbox.path) / "files").iterdir())) == FILES


def test_stages_work_side_by_side(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    asks = {"do": "await", "signal": 0, "limit": {"const": 20 * SECOND}, "expect": ["ok"]}
    # The first stage ends only once the second has done with the directory.
    plan = plan_of(
        drafts,
        AFTER_A_DIRECTORY,
        pipeline(stage([asks]), stage([], [{"do": "signal", "signal": 0}])),
    )
    engine = run(plan, make, sandbox, until)
    assert outcomes(engine, "await") == {"ok": 1}
    assert outcomes(engine, "transaction") == {"ok": 1}


IN_BATCHES = [
    *(["1", "d", 0, 0o755, ""], ["1x", "f", 100, 0o644, ""], ["1y", "f", 100, 0o644, ""]),
    *(["2", "d", 0, 0o755, ""], ["2y", "f", 100, 0o644, ""]),
]


def test_entries_are_handed_on_in_batches_and_the_last_ones_at_the_end(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    slow = {"do": "think", "time": {"const": SECOND // 50}}
    makes = [slow, named(drafts, 1, ".a"), drafts.open_new(1), drafts.call("close", file=1)]
    # What the first stage makes of a batch's last entry is there when the second begins with it.
    looks = [named(drafts, 1, "y.a"), drafts.call("stat", path=1)]
    batches = {**pipeline(stage(makes), stage([], looks)), "batches": [3]}
    engine = run(plan_of(drafts, IN_BATCHES, batches), make, sandbox, until)
    assert outcomes(engine, "stat") == {"ok": 2}
    assert outcomes(engine, "transaction") == {"ok": 1}


def test_the_slots_of_the_transaction_are_its_own(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    left_open = [named(drafts, 1, ".kept"), drafts.open_new(1)]
    plan = plan_of(
        drafts,
        AFTER_A_DIRECTORY,
        *(drafts.name(1, "own"), drafts.open_new(1)),
        pipeline(stage(left_open), stage([drafts.call("fstat", file=1, expect=("EBADF",))])),
        *(drafts.call("fsync", file=1), drafts.call("unlink", path=1)),
    )
    engine = run(plan, make, sandbox, until)
    assert outcomes(engine, "transaction") == {"ok": 1}
    assert outcomes(engine, "open") == outcomes(engine, "close") == {"ok": 2}
    assert outcomes(engine, "fstat") == {"EBADF": 1}
    names = {path.name for path in (Path(sandbox.path) / "files").iterdir()}
    assert names == {"d", "f", "f.kept"}


def test_a_stage_that_fails_ends_the_others_at_once(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    flock = drafts.call("flock", file=1, kind="exclusive", wait=True)
    locks = [drafts.name(1, "lock"), drafts.open_new(1), flock]
    fails = [drafts.name(2, "gone"), drafts.call("stat", path=2)]
    # The transaction holds the lock that the first stage waits for when the second one fails.
    plan = plan_of(drafts, AFTER_A_DIRECTORY, *locks, pipeline(stage(locks), stage([], fails)))
    engine = run(plan, make, sandbox, until)
    assert outcomes(engine, "transaction") == {"failed": 1}
    assert outcomes(engine, "stat") == {"ENOENT": 1}
    assert outcomes(engine, "open") == outcomes(engine, "close")
    assert outcomes(engine, "flock") in ({"ok": 1, "cancelled": 1}, {"ok": 1})


def test_a_segment_that_ends_breaks_stages_off(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    waits = {"do": "await", "signal": 3, "limit": {"const": 60 * SECOND}, "expect": ["ok"]}
    stat = drafts.call("stat", path=ENTRY)
    plan = plan_of(drafts, ENTRIES, pipeline(stage([stat]), stage([waits])))
    sandbox.lay_out(plan, 1).result()
    engine = make(plan, sandbox)
    engine.start_user(0)
    engine.begin_segment(0, 0, 0)
    until(lambda: outcomes(engine, "stat").get("ok") == FILES)
    assert engine.end_segment(0) == []
    assert outcomes(engine, "transaction") == {"cancelled": 1}


def test_pipelines_follow_each_other_in_a_transaction_and_from_one_to_the_next(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until
) -> None:
    stat = drafts.call("stat", path=ENTRY)
    stop = {"duration_ns": None, "transactions": 20}
    steps = [pipeline(stage([stat]), stage([stat])), pipeline(stage([stat]), stage([stat]))]
    plan = plan_of(drafts, ENTRIES[:5], *steps, stop=stop)
    engine = run(plan, make, sandbox, until)
    assert outcomes(engine, "transaction") == {"ok": 20}
    assert outcomes(engine, "stat") == {"ok": 20 * 2 * 2 * 5}


OTHER_ORDER = {**stage([]), "reverse": True}


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([stage([])], "a pipeline must have 2 to 8 stages"),
        ([stage([])] * 9, "a pipeline must have 2 to 8 stages"),
        ([stage([]), OTHER_ORDER], "stages must go through one dataset in one order"),
        ([stage([]), pipeline(stage([]), stage([]))], "a stage must be an each step"),
        (
            [stage([]), stage([pipeline(stage([]), stage([]))])],
            "a stage may hold neither replays nor other pipelines",
        ),
    ],
)
def test_a_wrong_pipeline_is_no_plan(drafts: Drafts, stages: list[Step], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drafts.plan([pipeline(*stages)])


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([0], "must be an integer from 1 to 1000000, got 0"),
        ([1_000_001], "must be an integer from 1 to 1000000, got 1000001"),
        ([1, 1], "every stage but the last must have a batch"),
        ([], "every stage but the last must have a batch"),
    ],
)
def test_wrong_batches_are_no_plan(drafts: Drafts, batches: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drafts.plan([{**pipeline(stage([]), stage([])), "batches": batches}])
