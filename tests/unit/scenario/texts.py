"""A small scenario that tests change in one place, and how a mistake in it is refused."""

import pytest

from replayer.plan.compile import compile_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import parse_scenario

SMALL = """\
name: small
users: {count: 2}
duration: 2s
datasets:
  files: {files: 10, bytes: 100KB, per_directory: 5}
  work: {directory: true, per: user}
mix: {look: 9, make: 1}
transactions:
  look:
    - open: {from: files, pick: uniform}
    - read: {size: 64KiB, until: end}
    - close
  make:
    - open: {in: work, name: "f{seq}", flags: [create, wronly]}
    - write: {size: {lognormal: {median: 300B, p95: 4KiB}}}
    - close
thresholds: ["look.p95 < 200ms"]
"""


def changed(old: str, new: str) -> str:
    """Return the small scenario with one piece of text replaced."""
    assert old in SMALL
    return SMALL.replace(old, new, 1)


def expect_refusal(text: str, message: str, hint: str) -> None:
    """Hold what is said of a scenario against how it should begin, in one line."""
    with pytest.raises(ScenarioError) as refused:
        compile_plan(parse_scenario(text, "s.yaml"))
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
    assert hint in refused.value.hint
    assert refused.value.exit_code == 2


def message_of(text: str) -> str:
    """Return the refusal of a text, or an empty string for a scenario."""
    try:
        compile_plan(parse_scenario(text, "s.yaml"))
    except ScenarioError as error:
        return str(error)
    return ""
