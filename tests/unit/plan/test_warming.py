"""What a warm-up takes of users' transactions is told before anything runs."""

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.document import say_warmed
from replayer.plan.summary import describe_plan
from replayer.scenario.loading import parse_scenario

TEXT = """\
name: t
users: {{count: 1}}
{end}
mix: {{t: 1}}
datasets:
  files: {{files: 4, sizes: 1KiB}}
transactions:
  t:
    - stat: {{from: files, pick: uniform}}
"""


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("iterations: 3", None),
        ("duration: 2s\nwarm_up: 500ms", None),
        ("iterations: 3\nwarm_up: 500ms", "of the 3 transactions of each user"),
        ("iterations: 3\nwarm_up: 500ms", "lasts 500 ms"),
    ],
)
def test_what_a_warm_up_takes_is_told(end: str, says: str | None) -> None:
    plan = compile_plan(parse_scenario(TEXT.format(end=end), "s.yaml"))
    said = say_warmed(plan)
    assert describe_plan(plan).warmed == said
    assert said is None if says is None else says in str(said)
