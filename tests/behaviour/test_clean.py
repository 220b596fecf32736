"""``replayer clean`` beside folders that it must leave, or cannot remove."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from replayer._native import Sandbox
from tests.behaviour.shell import ORDINARY, Shell, Until, needs_setpriv

NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")


def can_unshare() -> bool:
    """Whether a process may have a PID namespace of its own here."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="a PID namespace needs root")
def test_a_run_that_goes_on_in_another_pid_namespace_is_left_alone(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    run = shell.start("run", "tiny.yaml", "--target", mount, "-t", "60s", "--stop-timeout", "1s")
    until(lambda: any(mount.glob("replayer-*/.replayer-run")))
    (folder,) = mount.iterdir()

    def clean(*words: str) -> tuple[int, str]:
        process = shell.start("clean", *words, mount, within=NAMESPACE)
        out, err = process.communicate(timeout=30)
        return process.returncode, out + err

    code, said = clean()
    assert (code, folder.exists()) == (2, True), said
    assert f"{folder}: its run was started in another PID namespace" in said
    run.kill()
    run.communicate()
    code, said = clean()
    assert (code, folder.exists()) == (2, True), "nobody there can know that it was killed"
    code, said = clean("--force")
    assert (code, folder.exists()) == (0, False), said


@needs_setpriv
@pytest.mark.parametrize("closed", ["the folder", "its marker", "the target", "the default target"])
def test_what_may_not_be_looked_into_is_told_and_not_taken_for_nothing(
    shell: Shell, closed: str
) -> None:
    target = shell.target("replayer-data" if closed == "the default target" else "mount")
    run, others = target / "replayer-20261121T000000-abcd", target / "replayer-of-others"
    Sandbox.create(str(target), run.name.removeprefix("replayer-"), "{}")
    others.mkdir(0)
    # Without the right to search, names can be listed and not looked at.
    shut = run if closed in {"the folder", "its marker"} else target
    shut.chmod(0o400 if closed == "its marker" else 0)
    named = shell.home if closed == "the default target" else target
    process = shell.start("clean", named, within=ORDINARY)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (3, ""), err
    assert err == f"replayer: {shut}: Permission denied\n"
    for folder in (shut, others):
        folder.chmod(0o700)
    assert run.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_folder_with_a_mount_in_it_does_not_keep_those_behind_it(shell: Shell) -> None:
    target = shell.target()
    first, second = (
        Path(Sandbox.create(str(target), f"20261121T000000-000{number}", "{}").path)
        for number in range(2)
    )
    planted, outside = first / "planted", shell.target("outside")
    planted.mkdir()
    (outside / "mine").touch()
    (target / "replayer-of-others").mkdir()
    (target / "replayer-of-others" / ".replayer-run").mkdir()
    subprocess.run(["mount", "--bind", outside, planted], check=True)
    try:
        done = shell.run("clean", target)
    finally:
        subprocess.run(["umount", planted], check=True)
    assert done.code == 3, "what the mount refuses weighs more than what no run made"
    assert f"{planted}: " in done.err
    assert f"{target / 'replayer-of-others'}: was not made by a run" in done.err
    assert done.out.startswith(f"removed {second}: ")
    assert (outside / "mine").exists()
    assert first.exists()
    assert not second.exists()


def test_names_that_others_planted_do_not_speak_to_the_terminal(shell: Shell) -> None:
    target = shell.target()
    made = Path(Sandbox.create(str(target), "20261121T000000-0000", "{}").path)
    folder = made.rename(target / "replayer-\x1b]0;title\x07\nremoved everything")
    shown = f"{target}/replayer-\\x1b]0;title\\x07\\nremoved everything"
    done = shell.run("clean", "--dry-run", target)
    assert (done.code, done.out, done.err) == (0, f"would remove {shown}\n", "")
    shutil.rmtree(folder)
    done = shell.run("clean", folder)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"replayer: {shown}: is not a folder\nhint: ")
