"""A scenario takes what another file says, adds to it, and every value keeps its own line."""

from pathlib import Path

import pytest

from replayer.plan.compile import compile_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import Scenario

BASE = """\
name: base
about: What is shared.
iterations: 1
datasets:
  files: {files: 3, sizes: 1KiB}
mix: {look: 1}
sequences:
  probe: [{stat: {from: files}}]
transactions:
  look: [use: probe]
  leave: [use: probe]
"""
VARIANT = """\
name: variant
include: base.yaml
sequences:
  more: [use: probe]
transactions:
  look: [use: probe, use: more]
mix: {look: 1, leave: 2}
"""


def load(folder: Path, **texts: str) -> Scenario:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return load_scenario(folder / "variant.yaml")


def test_datasets_sequences_and_transactions_are_added_and_other_keys_replaced(
    tmp_path: Path,
) -> None:
    found = load(tmp_path, base=BASE, variant=VARIANT)
    assert (found.name, found.about) == ("variant", "What is shared.")
    assert list(found.sequences) == ["probe", "more"]
    assert len(found.transactions["look"]) == 2
    assert len(found.transactions["leave"]) == 1
    assert found.mix == {"look": 1, "leave": 2}
    assert found.iterations == 1


def test_a_mistake_names_the_file_in_which_it_was_written(tmp_path: Path) -> None:
    foul = BASE.replace("leave: [use: probe]", "leave: [use: prob]")
    with pytest.raises(ScenarioError, match=r"base\.yaml:11: .*prob"):
        load(tmp_path, base=foul, variant=VARIANT)
    foul = VARIANT.replace("use: more]", "use: mor]")
    with pytest.raises(ScenarioError, match=r"variant\.yaml:6: .*mor"):
        load(tmp_path, base=BASE, variant=foul)


def test_a_script_of_an_included_file_lies_beside_it(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "page.tsv").write_text("use\tname\nprobe\tf0\n")
    text = BASE.replace("{stat: {from: files}}", "stat: file").replace(
        "look: [use: probe]", "look: [{script: {in: files, file: page.tsv}}]"
    )
    (shared / "base.yaml").write_text(
        text.replace("leave: [use: probe]", "leave: [{stat: {from: files}}]")
    )
    variant = "name: variant\ninclude: shared/base.yaml\n"
    plan = compile_plan(load(tmp_path, variant=variant))
    assert [step.get("op") for step in plan.body["transactions"][0]["steps"]] == [None, "stat"]


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("nowhere.yaml", r"variant\.yaml:2: the included file .*nowhere\.yaml does not exist"),
        ("variant.yaml", r"include must be nested at most 4 files deep"),
        ("list.yaml", r"list\.yaml: must be a mapping with keys"),
        ("3", r"variant\.yaml:2: include"),
    ],
)
def test_what_cannot_be_included_is_refused(tmp_path: Path, include: str, message: str) -> None:
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(ScenarioError, match=message):
        load(tmp_path, base=BASE, variant=VARIANT.replace("base.yaml", include))


def test_parts_that_come_with_the_program_are_found_from_anywhere(tmp_path: Path) -> None:
    variant = VARIANT.replace("base.yaml", "[base.yaml, parts/php.yaml]")
    assert "get_contents" in load(tmp_path, base=BASE, variant=variant).sequences
