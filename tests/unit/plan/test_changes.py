"""Reads to the end are held against the entries that nobody can change, and against no others."""

from collections.abc import Mapping
from typing import Any

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.document import Plan
from replayer.scenario.loading import load_scenario, parse_scenario

LOOKED_AT = """
name: held
users: {count: 2}
iterations: 1
datasets:
  files: {files: 4, sizes: 1KiB, per_directory: 2, names: "f{n}"} # d0/f0, d0/f1, d1/f2, d1/f3
  others: {directory: true}
mix: {look: 1, touch: 1}
transactions:
  look: [open: {from: files}, read: {until: end}, close]
  touch: STEPS
"""


def is_checked(steps: str, old: str = "", new: str = "") -> bool:
    text = LOOKED_AT.replace("STEPS", steps).replace("WRITTEN", "flags: [wronly, create]")
    plan = compile_plan(parse_scenario(text.replace(old, new), "s.yaml"))
    return bool(plan.body["transactions"][0]["steps"][2]["check_size"])


def reads_to_the_end(plan: Plan) -> list[Mapping[str, Any]]:
    return [step for step in plan.steps("call") if step["op"] == "read" and step["until_end"]]


@pytest.mark.parametrize("played", ["mix.single_post=280", "mix.uncached_page=10"])
def test_pages_are_read_whole(played: str) -> None:
    reads = reads_to_the_end(compile_plan(load_scenario("wordpress-pages", [played])))
    assert len(reads) > 100
    assert all(read["check_size"] for read in reads)


def test_sources_are_read_whole() -> None:
    reads = reads_to_the_end(compile_plan(load_scenario("kernel-build-like", ["tree.files=99"])))
    assert [read["check_size"] for read in reads] == [True] * 3


@pytest.mark.parametrize(
    "steps",
    [
        '[open: {in: files, name: "new-{user}", WRITTEN}]',
        '[open: {in: files, name: "d0/f0.{random}", WRITTEN}]',
        '[bind: {from: files}, open: {in: files, name: "{file}.tmp", as: temporary, WRITTEN}]',
        '[bind: {from: files}, open: {in: files, name: "d1/{file.name}.new", as: beside, WRITTEN}]',
        '[unlink: {in: files, name: "d0/f0-{seq}"}]',
        "[rename: {in: files, name: a, to: {in: files, name: b, as: to}}]",
        '[mkdir: {in: files, name: more, as: dir}, open: {in: files, name: "{dir}/f1", WRITTEN}]',
        "[symlink: {in: others, name: l, target: away}, open: {in: others, name: l, WRITTEN}]",
        "[stat: {from: files}, chmod: {path: file, mode: 0o600}]",
    ],
)
def test_a_name_that_no_entry_has_changes_none(steps: str) -> None:
    assert is_checked(steps)


@pytest.mark.parametrize(
    "steps",
    [
        "[open: {from: files, WRITTEN}]",
        '[open: {in: files, name: "d0/f{user}", WRITTEN}]',
        '[open: {in: files, name: "d{seq}/f1", WRITTEN}]',
        '[open: {in: files, name: "D0/F1", WRITTEN}]',  # one file where case does not count
        '[bind: {from: files}, open: {in: files, name: "d0/{file.name}", as: other, WRITTEN}]',
        '[bind: {in: files, name: d0, as: dir}, open: {in: files, name: "{dir}/f1", WRITTEN}]',
        '[bind: {in: files, as: top}, open: {in: files, name: "{top}d0/f1", WRITTEN}]',
        '[bind: {in: files, name: x}, open: {in: files, name: "{file}", WRITTEN}]',
        "[each: {of: files, file: [{truncate: {path: entry}}]}]",
        "[for: {in: files, names: [x, d0/f0], steps: [{open: {path: file, WRITTEN}}]}]",
        "[unlink: {in: files, name: d0/f0}]",
        "[rename: {in: files, name: d0, to: {in: files, name: x, as: to}}]",
        "[rename: {in: files, name: x, to: {in: files, name: d0, as: to}, existing: exchange}]",
        "[link: {from: files, to: {in: others, name: b, as: to}}, open: {path: to, WRITTEN}]",
        "[symlink: {in: files, name: l, target: d0/f0}, open: {in: files, name: l, WRITTEN}]",
        "[symlink: {in: others, name: l, target: ../files/d0/f0}, open: {path: file, WRITTEN}]",
    ],
)
def test_where_a_name_may_lead_to_an_entry_no_length_is_known(steps: str) -> None:
    assert not is_checked(steps)


@pytest.mark.parametrize(
    ("name", "checked"), [("new-{user}", True), ("here/new", False), ("{user}/new", False)]
)
def test_names_may_lead_through_the_links_of_a_dataset(*, name: str, checked: bool) -> None:
    steps = f'[open: {{in: files, name: "{name}", WRITTEN}}]'
    assert is_checked(steps, 'names: "f{n}"', 'names: "f{n}", links: {here: d0}') == checked


def test_what_is_never_played_changes_nothing() -> None:
    steps = "[unlink: {from: files}]"
    assert is_checked(steps, "touch: 1}", "touch: 0}")
    assert not is_checked(
        steps, "touch: 1}", "touch: 0}\nroles: {one: {users: 1, mix: {touch: 1}}}"
    )
