"""Every example of scenarios/README.md is a scenario, or a part that fits into one."""

import re

import jsonschema
import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.document import parse_document
from replayer.scenario.json_schema import scenario_schema
from replayer.scenario.loading import parse_scenario
from replayer.scenario.shipped import shipped_folder
from replayer.scenario.steps import STEPS

README = (shipped_folder() / "README.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
AROUND = {
    "name": "name: example",
    "users": "users: {count: 2}",
    "duration": "duration: 1s",
    "datasets": "datasets:\n  documents: {files: 20, bytes: 1MB}\n  work: {directory: true}",
    "transactions": "transactions:\n  visit:\n    - stat: {from: documents}",
}


def completed(block: str) -> str:
    """Put the keys that an example leaves out around it."""
    value = parse_document(block, "README").value
    assert isinstance(value, dict)
    if "datasets" in value and "transactions" not in value:
        first = next(iter(value["datasets"]))
        around = {**AROUND, "transactions": f"transactions: {{visit: [stat: {{in: {first}}}]}}"}
    else:
        around = AROUND
    text = "\n".join([block, *(part for key, part in around.items() if key not in value)])
    if "mix" in value:
        return text
    names = value.get("transactions", {"visit": None})
    return f"{text}\nmix: {{{', '.join(f'{name}: 1' for name in names)}}}\n"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split(":")[0])
def test_an_example_compiles_and_fits_the_schema(block: str) -> None:
    text = completed(block)
    source = str(shipped_folder() / "README.md")
    describe_plan(compile_plan(parse_scenario(text, source)))
    jsonschema.Draft202012Validator(scenario_schema()).validate(parse_document(text, source).value)


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 6


def test_every_step_and_every_shipped_scenario_is_described() -> None:
    words = set(re.findall(r"[a-z0-9_-]+", README))
    assert set(STEPS) <= words
    assert {path.stem for path in shipped_folder().glob("*.yaml")} <= words
