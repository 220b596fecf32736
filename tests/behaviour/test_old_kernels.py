"""Where the kernel, or a filter before it, lacks a call."""

import subprocess
from pathlib import Path

from tests.behaviour.shell import Shell


def test_nothing_is_left_where_a_run_cannot_be_confined(shell: Shell, tmp_path: Path) -> None:
    program, target = tmp_path / "forbid", shell.target()
    source = Path(__file__).with_name("forbid_openat2.c")
    subprocess.run(["cc", "-o", program, source], check=True)
    words = ("run", "look.yaml", "--target", target)
    process = shell.start(*words, within=(str(program),))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "has no openat2" in err
    assert not list(target.iterdir())
