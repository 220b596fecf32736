"""Somebody deletes or renames a run's folder, or its marker, while the run goes on."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.behaviour.shell import Done, Shell, Until
from tests.behaviour.test_run_signals import is_measuring


@pytest.fixture
def meanwhile(shell: Shell, until: Until) -> Callable[..., Done]:
    """Run, and do something to the run's folder as soon as it measures."""

    def run(happens: Callable[[Path], object], *words: str) -> Done:
        target = shell.target()
        process = shell.start("run", "look.yaml", "-t", "3s", "--target", target, *words)
        until(lambda: is_measuring(shell.home))
        happens(next(target.glob("replayer-2*")))
        out, err = process.communicate(timeout=60)
        return Done(process.returncode, out, err)

    return run


@pytest.mark.parametrize(
    "words", [(), ("--threshold", "errors < 100%"), ("--keep",), ("--processes", "2")]
)
def test_a_folder_that_is_deleted_is_told_and_the_verdict_is_the_exit_code(
    meanwhile: Callable[..., Done], words: tuple[str, ...]
) -> None:
    done = meanwhile(shutil.rmtree, *words)
    assert done.code == 3, done.err
    assert "the run's folder on mount is gone: " in " ".join(done.out.split())
    assert "(exit code 3)" in done.out.splitlines()[0]
    assert "nothing was removed: " in done.err
    assert "left behind" not in done.err
    assert "kept" not in done.err


def test_a_folder_that_is_renamed_is_left_and_can_be_removed_by_its_new_name(
    shell: Shell, meanwhile: Callable[..., Done]
) -> None:
    other = shell.home / "other"
    done = meanwhile(lambda folder: folder.rename(other), "--json")
    document = json.loads(done.out)
    assert (done.code, document["verdict"]["exit_code"]) == (3, 3)
    assert "was deleted, renamed or replaced" in document["verdict"]["reasons"][0]
    assert "replayer clean NEW-NAME" in done.err
    assert len(list(other.rglob("*"))) > 20, "what somebody took is left to them"
    assert shell.run("clean", other).code == 0
    assert not other.exists()


def test_a_folder_without_its_marker_is_left_and_how_to_remove_it_is_said(
    meanwhile: Callable[..., Done],
) -> None:
    done = meanwhile(lambda folder: (folder / ".replayer-run").unlink())
    assert done.code == 3, done.err
    assert "the marker of the run's folder on mount is gone" in " ".join(done.out.split())
    (line,) = (line for line in done.err.splitlines() if "rm -r" in line)
    folder = Path(line.rpartition("rm -r ")[2])
    assert folder.is_dir()
    assert "replayer clean" not in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_mount_that_is_gone_is_told_from_a_folder_that_is(shell: Shell, until: Until) -> None:
    target = shell.target()
    subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
    try:
        process = shell.start("run", "look.yaml", "-t", "3s", "--target", target)
        until(lambda: is_measuring(shell.home))
    finally:
        subprocess.run(["umount", "-l", target], check=True)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "the mount of mount is gone, and " in " ".join(out.split())
    assert "left behind (its mount is gone)" in err
    assert "renamed" not in err
