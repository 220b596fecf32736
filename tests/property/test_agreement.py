"""The native engine does what the reference does: the same ops, outcomes, bytes and files."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer import _native as engine
from tests.property.observation import (
    Document,
    Observed,
    fresh_folder,
    run_native,
    run_reference,
    seen_by_reference,
)
from tests.property.plans import plans

ROUNDS = st.integers(0, 3)
FAULTS = {"ENOENT", "ENOTDIR", "ELOOP", "E2BIG"}
Ops = dict[tuple[str, str, str, bool], int]


def agree(document: Document, mount: Path, round_number: int) -> None:
    with fresh_folder(mount) as here, fresh_folder(mount) as there:
        run = run_reference(document, there, round_number)
        expected = seen_by_reference(run, there)
        observed = run_native(document, here, round_number)
        for one in (expected, observed):
            one.ops = without_order_of_faults(one.ops)
        for what in ("transactions", "ops", "bytes", "tree", "traits"):
            explain(what, observed, expected, run.samples)


def without_order_of_faults(ops: Ops) -> Ops:
    """Where paths are resolved before the call, another one of two faults is found first."""
    if engine.confinement() == "jailed":
        return ops
    merged: Counter[tuple[str, str, str, bool]] = Counter()
    for (transaction, op, outcome, expected), count in ops.items():
        found = "fault" if outcome in FAULTS else outcome
        merged[transaction, op, found, expected] += count
    return merged


def explain(what: str, observed: Observed, expected: Observed, samples: list[Any]) -> None:
    """Fail with what differs and with the ops of the reference that led there."""
    native, reference = getattr(observed, what), getattr(expected, what)
    if native == reference:
        return
    keys = sorted(native.keys() | reference.keys(), key=str)
    differing = [
        f"{key}: native {native.get(key)}, reference {reference.get(key)}"
        for key in keys
        if native.get(key) != reference.get(key)
    ]
    story = [
        f"user {s.user} {s.transaction} {s.op} {s.path} -> {s.outcome} {s.bytes}" for s in samples
    ]
    pytest.fail("\n".join([f"{what} differ:", *differing[:20], "reference:", *story[-200:]]))


@given(document=plans(1), round_number=ROUNDS)
def test_one_user_does_what_the_reference_does(
    mount: Path, document: Document, round_number: int
) -> None:
    agree(document, mount, round_number)


@given(document=st.integers(2, 5).flatmap(plans), round_number=ROUNDS)
def test_users_on_their_own_files_do_what_the_reference_does(
    mount: Path, document: Document, round_number: int
) -> None:
    agree(document, mount, round_number)


def test_users_who_may_not_change_their_root_do_the_same() -> None:
    setpriv = shutil.which("setpriv")
    if engine.confinement() == "guarded" or not setpriv:
        pytest.skip("the other tests are guarded already, or setpriv (util-linux) is missing")
    guarded = [setpriv, "--bounding-set=-sys_chroot", "--inh-caps=-all"]
    tests = [sys.executable, "-m", "pytest", "-q", __file__, "-k", "memory and reference"]
    done = subprocess.run([*guarded, *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "2 passed" in done.stdout
