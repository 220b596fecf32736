"""Verifying finds nothing wrong where nothing is: on any plan, also where users meet in files."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from replayer import _native as engine
from tests.property.observation import (
    Document,
    Observed,
    counted,
    fresh_folder,
    native_plan,
    run_native,
    run_reference,
    seen_by_reference,
    wait_until_idle,
)
from tests.property.plans import plans

WRONG = {"TORN", "SWAPPED", "LOST", "STALE"}
WRONLY, RDWR, CREAT, TRUNC, APPEND = 0o1, 0o2, 0o100, 0o1000, 0o2000

ANY: dict[str, Any] = {"expect": ["any"]}


def verified(document: Any) -> Any:  # noqa: ANN401 - JSON
    """Have a plan be verified: contents that can say whose they are."""
    match document:
        case {"compressible": 100}:
            return {"compressible": 99}
        case {"format": 1}:
            return {**{key: verified(value) for key, value in document.items()}, "verify": True}
        case dict():
            return {key: verified(value) for key, value in document.items()}
        case list():
            return [verified(value) for value in document]
        case "zeros":
            return "random"
        case _:
            return document


def wrong(observed: Observed) -> list[tuple[str, str, str, bool]]:
    return [key for key in observed.ops if key[2] in WRONG]


@settings(max_examples=30)
@given(document=plans(1))
def test_what_a_user_does_to_its_files_is_no_violation_and_changes_no_outcome(
    mount: Path, document: Document
) -> None:
    document = verified(document)
    with fresh_folder(mount) as here, fresh_folder(mount) as there:
        expected = seen_by_reference(run_reference(document, there, 0), there)
        observed = run_native(document, here, 0)
        assert wrong(observed) == []
        assert observed.transactions == expected.transactions
        assert observed.bytes == expected.bytes
        if engine.confinement() == "jailed":
            assert observed.ops == expected.ops


def read_back(machine: engine.Engine) -> Any:  # noqa: ANN401 - JSON
    """Have an engine read what its users left; what it found then."""
    machine.read_back(0, 2, budget_ns=60 * 10**9).result()
    found = json.loads(machine.verification() or "")
    assert found["last"]["left_files"] == found["last"]["failed_files"] == 0
    return found


@settings(max_examples=30)
@given(document=plans(1))
def test_what_a_user_leaves_is_no_violation_either_when_it_is_read_back(
    mount: Path, document: Document
) -> None:
    with fresh_folder(mount) as here:
        sandbox = engine.Sandbox.create(str(here), "run", "{}")
        plan = native_plan(verified(document))
        sandbox.lay_out(plan, 2).result()
        machine = engine.Engine(plan, [[sandbox]])
        machine.begin_segment(0, 0, 0)
        machine.start_user(0)
        wait_until_idle(machine)
        machine.end_segment(10**9)
        machine.close()
        found = read_back(machine)["last"]
    assert set(found["blocks"].values()) == {0}, found


def call(op: str, **operands: Any) -> dict[str, Any]:  # noqa: ANN401 - operands are JSON
    return {"do": "call", "op": op, **operands, **ANY}


def evenly(*branches: list[dict[str, Any]]) -> dict[str, Any]:
    return {"do": "choose", "branches": [[1, branch] for branch in branches]}


SIZE = OFFSET = {"table": 1}
Steps = list[dict[str, Any]]


def openings(seed: int) -> list[Steps]:
    return [
        [call("open", path=0, flags=flags, mode=0o644)]
        for flags in (
            *(0, 0, 0, WRONLY, RDWR, RDWR | CREAT, WRONLY | CREAT | TRUNC),
            *(RDWR | TRUNC, *((WRONLY | APPEND,) if seed % 2 else ())),
        )
    ]


def usings(opening: Steps) -> list[Steps]:
    return [
        [call("read", file=0, size=SIZE, until_end=False, check_size=False)],
        [call("read", file=0, size=SIZE, until_end=True, check_size=False)],
        [call("pread", file=0, size=SIZE, offset=OFFSET)],
        [call("write", file=0, total=SIZE, block=SIZE)],
        [call("pwrite", file=0, size=SIZE, offset=OFFSET)],
        [call("lseek", file=0, offset=OFFSET, whence=0)],
        [call("ftruncate", file=0, size=SIZE)],
        [call("close", file=0), {"do": "think", "time": {"const": 20_000}}, *opening],
    ]


def changings(seed: int, *, moves: bool) -> list[Steps]:
    return [
        [call("rename", path=0, to=1, flags=0)],
        [call("unlink", path=0)],
        [call("truncate", path=0, size=SIZE)],
        *([[call("link", path=0, to=1)]] if seed % 3 == 0 else []),
        *([[call("mkdir", path=1, mode=0o755), call("rmdir", path=1)]] if moves else []),
    ]


def crowd(seed: int, *, moves: bool, unit: int) -> Document:
    """Users who open, read, write, cut, rename and remove the same few files at the same time.

    Args:
        seed: What they do.
        moves: Whether directories are made as well, so that files go by their last names.
        unit: Sizes and offsets are multiples of it.
    """
    some = {"table": 0}
    named = {"do": "bind", "slot": 0, "name": {"dataset": 0, "parts": ["f", {"draw": some}]}}
    other = {"do": "bind", "slot": 1, "name": {"dataset": 0, "parts": ["f", {"draw": some}]}}
    opens = openings(seed)
    work = {"do": "repeat", "times": {"uniform": [1, 4]}, "steps": [evenly(*usings(opens[0]))]}
    return {
        "format": 1,
        "name": "crowd",
        "seed": seed,
        "users": 4,
        "written": "random",
        "pool_bytes": 1 << 20,
        "pickers": [],
        "mix": [8, 1],
        "warm_up_ns": 0,
        "verify": True,
        "tables": [list(range(6)), [unit * at for at in range(1, 9)]],
        "datasets": [
            {
                "name": "d",
                "directory": "d",
                "laid_out": True,
                "scope": "shared",
                "content": "random",
                "entries": [[f"f{at}", "f", 9000 + at, 0o644, ""] for at in range(6)],
            }
        ],
        "transactions": [
            {"name": "use", "steps": [named, evenly(*opens), work]},
            {"name": "change", "steps": [named, other, evenly(*changings(seed, moves=moves))]},
        ],
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": None, "transactions": 2000},
    }


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("unit", [100, 1024])
@pytest.mark.parametrize("seed", range(6))
def test_users_who_meet_in_files_are_no_violation(
    memory: Path, seed: int, unit: int, *, moves: bool
) -> None:
    with fresh_folder(memory) as here:
        sandbox = engine.Sandbox.create(str(here), "run", "{}")
        plan = engine.Plan(json.dumps(crowd(seed, moves=moves, unit=unit)).encode())
        sandbox.lay_out(plan, 2).result()
        machine = engine.Engine(plan, [[sandbox]])
        machine.begin_segment(0, 0, 0)
        for user in range(4):
            machine.start_user(user)
        wait_until_idle(machine)
        machine.end_segment(10**9)
        ops = counted(machine.totals())[0]
        machine.close()
        found = read_back(machine)
    assert [key for key in ops if key[2] in WRONG] == []
    assert set(found["blocks"].values()) == {0}
    assert set(found["last"]["blocks"].values()) == {0}, found["last"]
    assert found["reads"] > 0


def test_zeros_are_refused_as_they_cannot_say_whose_they_are() -> None:
    document = {**crowd(0, moves=False, unit=100), "written": "zeros"}
    with pytest.raises(ValueError, match="zeros cannot say whose they are"):
        engine.Plan(json.dumps(document).encode())
