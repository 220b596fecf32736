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
SMALL_ENTRIES = 20_000  # chosen: a second of layout in Python
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def document_of(path: Path, users: int) -> Document:
    """Compile a scenario for few short transactions that follow each other at once."""
    plan = compile_plan(load_scenario(path), users=users, transactions=3)
    document: Document = json.loads(plan.document())
    document["pace"] = {"kind": "closed", "think": {"const": 0}}
    document["stop"]["duration_ns"] = None
    document["warm_up_ns"] = 0
    entries = sum(len(dataset["entries"]) for dataset in document["datasets"])
    if entries > SMALL_ENTRIES and not IS_LONG:
        pytest.skip(f"{entries} entries: only with HYPOTHESIS_PROFILE=long")
    return document


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenarios_do_what_the_reference_does(tmp_path: Path, path: Path) -> None:
    agree(document_of(path, 1), tmp_path, 0)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_nothing_in_shipped_scenarios_is_unexpected(tmp_path: Path, path: Path) -> None:
    with fresh_folder(tmp_path) as folder:
        run = run_reference(document_of(path, 2), folder, 0)
    unexpected = [sample for sample in run.samples if not sample.expected]
    assert unexpected == []
