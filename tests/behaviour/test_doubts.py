"""Runs whose figures are not the mount's: those without a call, and those on a busy machine."""

import os
import subprocess
import sys

import pytest

from tests.behaviour.shell import LOOK_ONLY, Done, Shell


@pytest.mark.parametrize(
    "step",
    [
        "repeat: {times: 0, steps: [{stat: {from: files, pick: uniform}}]}",
        "each: {of: none, as: one, file: [{stat: one}]}",
        "choose: [{weight: 1, steps: []}]",
        "think: 1ms",
    ],
)
def test_a_run_without_a_file_call_is_inconclusive_and_check_warns_of_it(
    shell: Shell, step: str
) -> None:
    head, _ = LOOK_ONLY.split("  look:\n")
    none = "  none: {directory: true}\nmix:"
    text = f"{head.replace('mix:', none)}  look:\n    - {step}\n    - think: 1ms\n"
    (shell.home / "idle.yaml").write_text(text)
    checked = shell.run("check", "idle.yaml")
    assert (checked.code, checked.err) == (0, "")
    assert "\nwarning       look makes no file call: such a run is inconclusive" in checked.out
    done = shell.run("run", "idle.yaml")
    assert done.code == 4, done.out + done.err
    assert "in the measured phase: look ended without one" in done.out


@pytest.mark.parametrize(
    "processes", [(), pytest.param(("--processes", "2"), marks=pytest.mark.nightly)]
)
def test_another_program_that_uses_the_cpu_is_named_and_no_user_is_blamed(
    shell: Shell, processes: tuple[str, ...]
) -> None:
    pinned = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    other = subprocess.Popen([*pinned, sys.executable, "-c", "while True: pass"])
    try:
        words = ("look.yaml", "-t", "2s", "-u", "4", "--target", shell.target(), "--json")
        run = shell.start("run", *words, *processes, within=pinned)
        out, err = run.communicate(timeout=240)
    finally:
        other.kill()
        other.wait()
    document = Done(run.returncode, out, err).document()
    health = document["health"]
    assert health["others_cpu_share"] > 0.3
    assert health["others_cpu_share"] > health["client_cpu_share"]
    hints = {each["kind"]: each["hint"] for each in document["warnings"]}
    assert "use fewer" not in hints.get("waited for a cpu", "")
    assert hints.get("waited for a cpu", "stop the other programs").startswith("stop the other")
