"""The native engine does what the reference does: the same ops, outcomes, bytes and files."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def agree(document: Document, mount: Path, round_number: int) -> None:
    with fresh_folder(mount) as here, fresh_folder(mount) as there:
        run = run_reference(document, there, round_number)
        expected = seen_by_reference(run, there)
        observed = run_native(document, here, round_number)
        for what in ("transactions", "ops", "bytes", "tree", "traits"):
            explain(what, observed, expected, run.samples)


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
