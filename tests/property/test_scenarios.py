"""Shipped scenarios: both engines do the same, and nothing unexpected happens."""

import json
import os
from pathlib import Path

import pytest

from replayer.plan.compile import compile_plan
from replayer.scenario import load_scenario
from tests.property.observation import Document, fresh_folder, run_reference
from tests.property.test_agreement import agree

SCENARIOS = sorted((Path(__file__).parent.parent.parent / "scenarios").glob("*.yaml"))
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SMALL_BYTES = 100_000_000  # chosen, as the next one: a second or two of layout in Python
SMALL_ENTRIES = 5_000


def document_of(path: Path, users: int) -> Document:
    """Compile a scenario for few transactions that follow each other at once."""
    scenario = load_scenario(path)
    plan = compile_plan(scenario, users=users, transactions=min(scenario.iterations or 2, 2))
    document: Document = json.loads(plan.document())
    document["pace"] = {"kind": "closed", "think": {"const": 0}}
    document["stop"]["duration_ns"] = None
    document["warm_up_ns"] = 0
    sizes = [entry[2] for dataset in document["datasets"] for entry in dataset["entries"]]
    if not IS_LONG and (len(sizes) > SMALL_ENTRIES or sum(sizes) > SMALL_BYTES):
        pytest.skip(f"{len(sizes)} entries of {sum(sizes)} bytes: with HYPOTHESIS_PROFILE=long")
    return document


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenarios_do_what_the_reference_does(memory: Path, path: Path) -> None:
    agree(document_of(path, 1), memory, 0)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_nothing_in_shipped_scenarios_is_unexpected(memory: Path, path: Path) -> None:
    with fresh_folder(memory) as folder:
        run = run_reference(document_of(path, 2), folder, 0)
    unexpected = [sample for sample in run.samples if not sample.expected]
    assert unexpected == []
