"""A plan that breaks the format is refused with place, value and bound."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from replayer._native import Plan
from tests.unit.engine.drafts import Drafts, Run

Change = Callable[[dict[str, Any]], object]


def first_step(**step: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        document["transactions"][0]["steps"] = [step]

    return change


CHANGES: list[tuple[Change, str]] = [
    (lambda d: d.update(format=2), "plan: format: must be an integer from 1 to 1, got 2"),
    (
        lambda d: d.update(user=1),
        "plan: user: unknown field `user`, expected one of `format`, `name`",
    ),
    (lambda d: d.pop("mix"), "plan: missing field `mix`"),
    (lambda d: d.update(mix=[0]), "plan: mix: the sum of the weights must be from 1"),
    (lambda d: d.update(name="A b"), "plan: name: must be a name like"),
    (lambda d: d.update(users=0), "plan: users: must be an integer from 1"),
    (lambda d: d.update(pool_bytes=4100), "plan: pool_bytes: must be a multiple of 8"),
    (
        lambda d: d["datasets"][0]["entries"][1].__setitem__(0, "../b"),
        r'plan: datasets\[0\].entries\[1\]\[0\]: the path "../b" has a . or .. component',
    ),
    (
        lambda d: d["datasets"].append(d["datasets"][0] | {"name": "o", "directory": "files/x"}),
        'plan: datasets: datasets "files" and "o" share the directory "files/"',
    ),
    (
        lambda d: d["pickers"][0].update(segments=[[1, 0, 3]]),
        r"plan: pickers\[0\].segments\[0\]\[2\]: must be an integer from 1 to 2, got 3",
    ),
    (
        lambda d: d["pickers"][0].update(types="l"),
        r"plan: pickers\[0\].types: no entry of the dataset has such a type",
    ),
    (
        first_step(do="jump"),
        r"plan: transactions\[0\].steps\[0\].do: unknown variant `jump`, expected one of `bind`",
    ),
    (first_step(do="bind", slot=16, pick=0), "slot: must be an integer from 0 to 15, got 16"),
    (
        first_step(do="bind", slot=0, pick=1),
        r"pick: must be the number of a picker \(there are 1\)",
    ),
    (first_step(do="call", op="stat", path=0, expect=["ENOPE"]), "must be ok, any or the name of"),
    (
        first_step(do="call", op="stat", path=0, file=1, expect=["ok"]),
        r"steps\[0\].file: unknown field `file`, expected `path`",
    ),
    (
        first_step(do="call", op="open", path=0, flags=1 << 30, mode=None, expect=["ok"]),
        "flags: must be a sum of known open flags",
    ),
    (
        first_step(
            do="call",
            op="pwrite",
            file=0,
            size={"const": 1 << 20},
            offset={"const": 0},
            expect=["ok"],
        ),
        "pool_bytes: must be at least 1052672",
    ),
    (
        first_step(do="think", time={"uniform": [5, 4]}),
        r"time.uniform: must be a low and a high number, got \[5,4\]",
    ),
    (
        lambda d: d.update(pace={"kind": "closed", "gap": {"const": 0}}),
        "plan: pace.gap: unknown field `gap`, expected `think`",
    ),
    (
        lambda d: d.update(traces=[{"name": "t", "directory": "t", "sha256": "12"}]),
        r"plan: traces\[0\].sha256: must be 64 hexadecimal digits in lower case, got",
    ),
    (
        lambda d: d.update(traces=[{"name": "t", "directory": "/t", "sha256": "0" * 64}]),
        r'plan: traces\[0\].directory: the path "/t" has an empty component',
    ),
    (
        lambda d: d.update(traces=[{"name": "t", "directory": "files/t", "sha256": "0" * 64}]),
        'plan: traces: "files" and "t" share the directory "files/"',
    ),
    (
        lambda d: d.update(traces=[{"name": "t", "directory": "t", "sha256": "0" * 64}]),
        "plan: traces: needs the folders of 1 traces, got 0",
    ),
    (first_step(do="bind_pick", slot=0, pick=0), r"steps\[0\].do: unknown variant `bind_pick`"),
    (first_step(do="bind", slot=0), "must have one of `pick`, `name` and `dataset`"),
    (first_step(do="think", time=5), r"steps\[0\].time: invalid type: integer `5`"),
    (
        first_step(do="call", op="open", path=0, slot=1, flags=0, mode=None, expect=["ok"]),
        r"steps\[0\]: unknown field `slot`",
    ),
    (lambda d: d.update(written={"random": None}), "plan: written: must be random, zeros or"),
    (
        first_step(do="replay", trace=0, request=None, pace="asap", speed_percent=100),
        r"steps\[0\].trace: must be the number of a trace \(there are 0\), got 0",
    ),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_broken_plans_are_refused(drafts: Drafts, change: Change, message: str) -> None:
    document = copy.deepcopy(drafts.document([]))
    change(document)
    with pytest.raises(ValueError, match=message):
        Plan(json.dumps(document).encode())


def test_steps_nest_at_most_sixteen_deep(drafts: Drafts, run: Run) -> None:
    step = drafts.call("stat", path=0, expect=("EINVAL",))
    for _ in range(15):
        step = {"do": "repeat", "times": {"const": 1}, "steps": [step]}
    assert run(drafts.plan([step]))["stat", "EINVAL", True].histogram.count == 1
    with pytest.raises(ValueError, match="steps may nest at most 16 deep"):
        drafts.plan([{"do": "repeat", "times": {"const": 1}, "steps": [step]}])


def test_a_plan_knows_its_names(drafts: Drafts) -> None:
    plan = drafts.plan([])
    assert (plan.transactions, plan.datasets) == (("work",), ("files",))


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_what_is_no_plan_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match="plan: "):
        Plan(document)
