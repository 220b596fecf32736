"""Pipelines: what they compile to, and what is refused."""

from typing import Any

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import parse_scenario

HEAD = """\
name: stages
users: {count: 1}
iterations: 1
datasets:
  source: {files: 3, sizes: 10KiB}
  other: {files: 3, sizes: 1KiB}
  copy: {directory: true}
mix: {copy: 1}
"""
BODY = """\
transactions:
  copy:
    - open: {in: copy, name: log, as: log, flags: [wronly, create]}
    - pipeline:
        - each: {of: source, as: entry, file: [{open: entry}, {read: {file: entry, size: 64KiB}}]}
        - each:
            of: source
            as: entry
            file:
              - open: {in: copy, name: "{entry}", flags: [wronly, create]}
              - write: {size: {size_of: entry}, block: 4KiB}
              - close
    - fsync: log
"""


def compiled(body: str = BODY) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = compile_plan(parse_scenario(HEAD + body, "s.yaml")).body[
        "transactions"
    ][0]["steps"]
    return steps


def test_a_pipeline_holds_its_stages_in_order() -> None:
    (pipeline,) = [step for step in compiled() if step["do"] == "pipeline"]
    assert [stage["do"] for stage in pipeline["steps"]] == ["each", "each"]
    reading, writing = ([step["op"] for step in s["f"] if "op" in step] for s in pipeline["steps"])
    assert reading == ["open", "read"]
    assert writing == ["open", "write", "close"]


def test_its_calls_are_counted_and_the_closing_of_what_a_stage_leaves_open() -> None:
    plan = compile_plan(parse_scenario(HEAD + BODY, "s.yaml"))
    (copy,) = describe_plan(plan).transactions
    wanted = {"open": 7, "read": 3, "write": 9, "close": 7, "fsync": 1}
    assert {op: copy.ops[op] for op in wanted} == wanted


def test_every_stage_but_the_last_hands_on_in_batches_of_one_unless_it_says_so() -> None:
    in_batches = BODY.replace("of: source, as: entry, file", "of: source, batch: 7, file", 1)
    found = [compiled(body) for body in (BODY, in_batches)]
    pipelines = [step for steps in found for step in steps if step["do"] == "pipeline"]
    assert [pipeline["batches"] for pipeline in pipelines] == [[1], [7]]


EACH = "each: {of: source, as: entry, file: [lstat: entry]}"
REVERSED = "each: {of: source, as: entry, reverse: true, file: [lstat: entry]}"
OTHER = "each: {of: other, as: entry, file: [lstat: entry]}"
INNER = "each: {of: source, as: entry, file: [pipeline: [each: {of: other}, each: {of: other}]]}"
AGAIN = "each: {of: source, as: entry, file: [use: inner]}"
FOREIGN = "each: {of: source, as: entry, file: [fsync: log]}"
BATCH = "each: {of: source, batch: 2, file: [lstat: entry]}"
ZERO = "each: {of: source, batch: 0, file: [lstat: entry]}"
NESTED = "each: {of: source, file: [each: {of: other, batch: 2, file: [lstat: entry]}]}"
UNKNOWN = 'each: {of: source, as: entry, file: [lstat: {in: copy, name: "{first}"}]}'


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (f"[{EACH}]", "must have at least 2"),
        (f"[{', '.join([EACH] * 9)}]", "must have at most 8"),
        (f"[{EACH}, think: 1ms]", "only each: steps, got think"),
        (f"[{EACH}, {REVERSED}]", "one dataset in one order"),
        (f"[{EACH}, {OTHER}]", "one dataset in one order"),
        (f"[{EACH}, {INNER}]", "has a pipeline: step inside a pipeline stage:"),
        (f"[{EACH}, {AGAIN}]", "has a pipeline: step inside a pipeline stage:"),
        (f"[{EACH}, {FOREIGN}]", "uses the file log before an open step opens it"),
        (f"[{EACH}, {BATCH}]", "in its last stage, which passes no entries on"),
        (f"[{ZERO}, {EACH}]", "batch"),
        (f"[{NESTED}, {EACH}]", "works only in stages of a pipeline, and this each: is not one"),
        (f"[{EACH}, {UNKNOWN}]", "uses the name first, which no earlier step sets"),
    ],
)
def test_a_wrong_pipeline_is_refused_with_its_place(stages: str, message: str) -> None:
    text = f"""\
{HEAD}\
sequences:
  inner: [pipeline: [{OTHER}, {OTHER}]]
transactions:
  copy:
    - open: {{in: copy, name: log, as: log, flags: [wronly, create]}}
    - each: {{of: source, as: first, file: [lstat: first]}}
    - pipeline: {stages}
"""
    with pytest.raises(ScenarioError, match=message) as refusal:
        parse_scenario(text, "s.yaml")
    assert str(refusal.value).startswith("s.yaml:")


def test_what_a_stage_binds_is_not_known_behind_the_pipeline() -> None:
    behind = BODY.replace("    - fsync: log\n", '    - stat: {in: copy, name: "{entry}"}\n')
    with pytest.raises(ScenarioError, match="uses the name entry"):
        parse_scenario(HEAD + behind, "s.yaml")
