"""Where the kernel, or a filter before it, lacks a call."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell

LANDLOCK_CREATE_RULESET = 444  # on every architecture; not in the headers of older systems


def forbid(call: str | int, folder: Path) -> str:
    """Build the program that runs another one without a call."""
    program = folder / "forbid"
    source = Path(__file__).with_name("forbid_call.c")
    subprocess.run(["cc", f"-DCALL={call}", "-o", program, source], check=True)
    return str(program)


def test_nothing_is_left_where_a_run_cannot_be_confined(shell: Shell, tmp_path: Path) -> None:
    target = shell.target()
    words = ("run", "look.yaml", "--target", target)
    process = shell.start(*words, within=(forbid("SYS_openat2", tmp_path),))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "has no openat2" in err
    assert not list(target.iterdir())


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_where_the_kernel_cannot_keep_fio_in_its_folder_the_run_says_so(
    shell: Shell, tmp_path: Path
) -> None:
    (shell.home / "own.fio").write_text("[own]\nrw=write\nbs=4k\nsize=64k\n")
    words = ("baseline", "own.fio", "--target", shell.target(), "-o", "run")
    process = shell.start(*words, within=(forbid(LANDLOCK_CREATE_RULESET, tmp_path),))
    out, err = process.communicate(timeout=60)
    assert process.returncode in {0, 4}, err
    assert "kept in its folder by its checked job file alone" in " ".join(out.split())
    run = json.loads((shell.home / "run/run.json").read_text())
    assert run["targets"][0]["confinement"] == "checked"
