"""What verifying cannot claim is known from the plan, as the engine tells files apart by it."""

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.document import say_limits, tells_by_name
from replayer.plan.summary import describe_plan
from replayer.scenario.loading import parse_scenario

HEAD = """\
name: t
users: {count: 1}
duration: 1s
verify: true
datasets:
  files: {files: 4, sizes: 1KiB}
mix: {t: 1}
transactions:
  t:
"""
MKDIR = "    - mkdir: {in: files, name: d, as: made}\n"
REPEATED = "    - repeat: {times: 2, steps: [{mkdir: {in: files, name: d}}]}\n"
RENAME = "    - rename: {path: file, to: {in: files, name: n, as: to}}\n"
PICK = "    - stat: {from: files, pick: uniform, as: file}\n"
LINK = "    - symlink: {in: files, name: l, as: link, target: d}\n"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (PICK, None),
        (PICK + RENAME, None),
        (PICK + MKDIR, None),
        (PICK + RENAME + MKDIR, "directories are made and names changed"),
        (
            PICK + "    - repeat: {times: 2, steps: [{mkdir: {in: files, name: d}}]}\n" + RENAME,
            "made",
        ),
        (LINK, "symbolic links"),
    ],
)
def test_what_cannot_be_claimed_is_told_with_its_reason(steps: str, reason: str | None) -> None:
    plan = compile_plan(parse_scenario(HEAD + steps, "s.yaml"))
    said = say_limits(plan)
    assert describe_plan(plan).verify_limits == said
    assert tells_by_name(plan) == (reason is not None)
    assert said is None if reason is None else reason in str(said)


def test_where_nothing_is_verified_nothing_is_told() -> None:
    text = HEAD.replace("verify: true\n", "") + LINK
    assert say_limits(compile_plan(parse_scenario(text, "s.yaml"))) is None


def test_links_that_are_laid_out_count_too() -> None:
    text = HEAD.replace("1KiB}", "1KiB, links: {current: d0}}") + PICK
    assert "symbolic links" in str(say_limits(compile_plan(parse_scenario(text, "s.yaml"))))
