"""Several services that run already, such as a web server and its PHP, recorded in one trace."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.behaviour.shell import Shell, Until
from tests.behaviour.test_capture_signals import SERVICE, is_recorded, is_untraced, load
from tests.processes import children_of

FORMS = {"repeated": "-p {} -p {}", "with a comma": "-p {},{}"}
UMASKS = {"nginx": 0o022, "php": 0o077}


@pytest.fixture
def services(shell: Shell, until: Until) -> Iterator[list[int]]:
    """Two, each with a root and an umask of its own, a child, and a file opened long before."""
    with ExitStack() as stack:
        pids = []
        for name, umask in UMASKS.items():
            root = shell.home / name / "root"
            root.mkdir(parents=True)
            words = [sys.executable, "-c", SERVICE]
            process = subprocess.Popen(words, cwd=root.parent, umask=umask, process_group=0)
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            until((root / "service.log").exists)
            until(lambda: len(children_of(process.pid)) == 1)  # noqa: B023 - called at once
            pids.append(process.pid)
        yield pids


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_all_processes_that_are_named_are_recorded_in_one_trace(
    shell: Shell, until: Until, services: list[int], form: str, recorder: str
) -> None:
    roots = [word for name in UMASKS for word in ("--root", shell.home / name / "root")]
    words = ("capture", "--recorder", recorder, "-o", "trace", *roots)
    capturing = shell.start(*words, *form.format(*services).split())
    recorded = [*services, *(child for pid in services for child in children_of(pid))]
    until(lambda: all(is_recorded(shell, recorder, pid) for pid in recorded))
    written = {name: (shell.home / name / "root/service.log").stat().st_size for name in UMASKS}
    until(
        lambda: all(
            (shell.home / name / "root/service.log").stat().st_size > size + 100
            for name, size in written.items()
        )
    )
    capturing.send_signal(signal.SIGINT)
    _, err = capturing.communicate(timeout=120)
    assert capturing.returncode == 0, err
    assert all(map(is_untraced, recorded))

    counts = load(shell.home / "trace")["counts"]
    assert counts["threads"] == 4, "both, and the child of each"
    # Two descriptors of each, from before. Only eBPF tells that a parent and its child share them.
    assert counts["ops"]["inherit"] == {"ebpf": 4, "strace": 8}[recorder]
    assert counts["calls_with_unknown_file"] == {}
    assert counts["lines_not_understood"] == 0
    facts = json.loads((shell.home / "trace/capture.json").read_text())
    assert facts["pids"] == services
    assert sorted(each["pid"] for each in facts["processes_before"]) == sorted(recorded)
    umasks = {each["pid"]: int(each["umask"], 8) for each in facts["processes_before"]}
    assert [umasks[pid] for pid in services] == [*UMASKS.values()]
    done = shell.run("replay", "trace", "--target", shell.target(), "--json")
    assert done.document()["replay"]["results"]["diverged"] == [], done.err


def test_a_process_that_is_named_and_descends_from_another_is_recorded_once(
    shell: Shell, until: Until, services: list[int], recorder: str
) -> None:
    parent = services[0]
    (child,) = children_of(parent)
    named = f"{parent}\n{child}\n{parent}"  # as pgrep prints them
    root = shell.home / "nginx/root"
    words = ("capture", "--recorder", recorder, "-o", "trace", "--root", root, "-p", named)
    capturing = shell.start(*words)
    until(lambda: all(is_recorded(shell, recorder, pid) for pid in (parent, child)))
    size = (root / "service.log").stat().st_size
    until(lambda: (root / "service.log").stat().st_size > size + 100)
    capturing.send_signal(signal.SIGINT)
    _, err = capturing.communicate(timeout=120)
    assert capturing.returncode == 0, err
    assert load(shell.home / "trace")["counts"]["threads"] == 2


@pytest.mark.parametrize("named", ["1,x", ",", "0", "-5", "1.5"])
def test_what_is_no_number_of_a_process_is_refused(shell: Shell, named: str) -> None:
    (shell.home / "root").mkdir()
    done = shell.run("capture", "-o", "trace", "--root", "root", f"-p{named}")
    assert done.code == 2
    assert f"'{named}' must be the number of a process" in done.err


def test_one_of_several_processes_that_is_not_there_is_named(
    shell: Shell, services: list[int]
) -> None:
    (shell.home / "root").mkdir()
    done = shell.run("capture", "-o", "trace", "--root", "root", "-p", f"{services[0]},999999999")
    assert done.code == 2
    assert "-p 999999999: no such process" in done.err
    assert is_untraced(services[0])
