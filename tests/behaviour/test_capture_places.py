"""Where captures are made: beside the roots, and whatever becomes of the working directory."""

import subprocess
import sys

import pytest

from tests.behaviour.shell import Shell


def test_a_program_that_lists_the_root_sees_nothing_of_ours(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = shell.run("capture", "-o", "root/trace", "--root", "root", "--", "find", "root")
    assert done.out == "root\nroot/a\n"
    replayed = shell.run("replay", "root/trace", "--target", shell.target(), "--json")
    assert replayed.document()["replay"]["results"]["diverged"] == []


def test_a_trace_beside_the_root_is_not_taken_for_one_in_it(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = shell.run("capture", "-o", "root/../trace", "--root", "root", "--", "cat", "root/a")
    assert done.code == 0
    assert "lies in the root" not in done.err


@pytest.mark.parametrize(
    "script",
    ["cd ..; rm -rf root; mkdir root; exit 7", "cd ..; mv root old; cp -r old root; exit 7"],
)
def test_a_command_may_replace_the_directory_that_it_was_started_in(
    shell: Shell, script: str
) -> None:
    root = shell.home / "root"
    root.mkdir()
    (root / "a").write_text("a")
    words = ["capture", "-o", "../trace", "--root", ".", "--", "bash", "-c", script]
    process = subprocess.run(
        [sys.executable, "-m", "replayer", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 7, process.stderr
    assert (shell.home / "trace/trace.json").exists()
