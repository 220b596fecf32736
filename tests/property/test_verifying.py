"""Verifying finds nothing wrong where nothing is: on any plan, also where users get into each other's way."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replayer import engine
from tests.property.observation import (
    Document,
    Observed,
    fresh_folder,
    run_native,
    run_reference,
    seen_by_reference,
)
from tests.property.plans import ALONE, plans
from tests.property.steps import steps

WRONG = {"TORN", "SWAPPED", "LOST", "STALE"}


def verified(document: Any, *, waits: bool) -> Any:  # noqa: ANN401 - JSON
    """Have a plan be verified: contents that can say whose they are, and no lock that is waited for."""
    match document:
        case {"format": 1}:
            rest = {key: verified(value, waits=waits) for key, value in document.items()}
            return {**rest, "verify": True}
        case dict():
            changed = {key: verified(value, waits=waits) for key, value in document.items()}
            if document.get("op") in {"flock", "fcntl_lock"} and not waits:
                changed["wait"] = False
            return changed
        case list():
            return [verified(value, waits=waits) for value in document]
        case "zeros":
            return "random"
        case _:
            return document


def wrong(observed: Observed) -> list[tuple[str, str, str, bool]]:
    return [key for key in observed.ops if key[2] in WRONG]


@given(document=plans(1))
def test_what_one_user_does_to_its_files_is_no_violation_and_changes_no_outcome(
    mount: Path, document: Document
) -> None:
    document = verified(document, waits=True)
    with fresh_folder(mount) as here, fresh_folder(mount) as there:
        expected = seen_by_reference(run_reference(document, there, 0), there)
        observed = run_native(document, here, 0)
        assert wrong(observed) == []
        assert observed.transactions == expected.transactions
        assert observed.bytes == expected.bytes
        if engine.confinement() == "jailed":
            assert observed.ops == expected.ops


@st.composite
def crowds(draw: st.DrawFn) -> Document:
    """Users who work on the same files at the same time."""
    document = draw(plans(1))
    users = draw(st.integers(2, 4))
    bodies = draw(st.lists(steps(ALONE), min_size=1, max_size=2))
    transactions = [{"name": f"t{at}", "steps": body} for at, body in enumerate(bodies)]
    own = [picker for picker in document["pickers"] if picker["kind"] == "own"]
    if own:
        return document
    return {
        **document,
        "users": users,
        "transactions": transactions,
        "mix": [1] * len(bodies),
        "stop": {"duration_ns": None, "transactions": 20},
    }


@settings(max_examples=150)
@given(document=crowds())
def test_users_on_the_same_files_are_no_violation(mount: Path, document: Document) -> None:
    with fresh_folder(mount) as here:
        assert wrong(run_native(verified(document, waits=False), here, 0)) == []


def test_zeros_are_refused_as_they_cannot_say_whose_they_are() -> None:
    document = {
        **{"format": 1, "name": "zeros", "seed": 1, "users": 1, "written": "zeros"},
        **{"pool_bytes": 4096, "tables": [], "datasets": [], "pickers": [], "mix": [1]},
        **{"pace": {"kind": "closed", "think": {"const": 0}}, "warm_up_ns": 0, "verify": True},
        **{"stop": {"duration_ns": None, "transactions": 1}},
        "transactions": [{"name": "t", "steps": []}],
    }
    import json

    with pytest.raises(ValueError, match="zeros cannot say whose they are"):
        engine.Plan(json.dumps(document).encode())
