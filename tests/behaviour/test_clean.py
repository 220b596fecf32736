"""``replayer clean`` beside folders that it must leave, or cannot remove."""

import os
import shutil
import subprocess

import pytest

from tests.behaviour.shell import Shell, Until

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
