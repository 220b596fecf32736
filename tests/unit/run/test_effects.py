"""Whether running a plan changes what was laid out."""

from pathlib import Path

import pytest

from replayer.plan.compile import compile_plan
from replayer.run.workload import changes_files
from replayer.scenario.loading import parse_scenario

HEAD = """\
name: t
users: {count: 1}
duration: 1s
datasets:
  files: {files: 4, sizes: 1KiB}
mix: {t: 1}
transactions:
  t:
"""


@pytest.mark.parametrize(
    ("steps", "changes"),
    [
        ("    - stat: {from: files, pick: uniform}", False),
        ("    - open: {from: files, pick: uniform}\n    - read: {size: 1KiB}\n    - close", False),
        ("    - open: {from: files, pick: uniform, flags: [rdwr]}\n    - close", True),
        ("    - unlink: {from: files, pick: uniform}", True),
        (
            "    - repeat: {times: 2, steps: [chmod: {from: files, pick: uniform, mode: 0o600}]}",
            True,
        ),
    ],
)
def test_only_plans_that_open_for_writing_or_alter_names_change_files(
    tmp_path: Path, steps: str, *, changes: bool
) -> None:
    scenario = parse_scenario(HEAD + steps, str(tmp_path / "t.yaml"))
    assert changes_files(compile_plan(scenario)) is changes
