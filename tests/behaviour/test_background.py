"""Commands that a script begins with ``&``: such a shell has SIGINT ignored in them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.behaviour.probe_records import HEAD_BYTES
from tests.behaviour.shell import Process, Shell, Until
from tests.behaviour.test_run_signals import is_measuring

SCRIPT = ("sh", "-c", '"$@" & echo $! >job; wait $!', "sh")
SLEEPER = "import os, time\nwhile True:\n    os.stat('root')\n    time.sleep(0.01)\n"
JOB = "[save]\nioengine=psync\nrw=write\nbs=4k\nsize=64k\nruntime=600s\ntime_based=1\n"
LOCUSTFILE = "import time\nopen('begun', 'w').close()\ntime.sleep(600)\n"


def interrupted(shell: Shell, process: Process) -> tuple[str, str]:
    """Send the job of a script a SIGINT, and wait for the script's end."""
    job = int((shell.home / "job").read_text())
    os.kill(job, signal.SIGINT)
    try:
        return process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.kill(job, signal.SIGTERM)
        process.communicate()
        raise


@pytest.fixture
def sleeper(shell: Shell) -> Iterator[subprocess.Popen[bytes]]:
    (shell.home / "root").mkdir()
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], cwd=shell.home)
    yield process
    process.kill()
    process.wait()


def test_a_capture_of_a_service_that_a_script_began_in_the_background_ends_on_sigint(
    shell: Shell, until: Until, sleeper: subprocess.Popen[bytes]
) -> None:
    words = ("capture", "-o", "trace", "--root", "root", "-p", str(sleeper.pid))
    process = shell.start(*words, within=SCRIPT)
    log = ".trace.capture-*/log.*"
    until(lambda: any(path.stat().st_size > HEAD_BYTES for path in shell.home.glob(log)))
    _, err = interrupted(shell, process)
    assert process.returncode == 0, err
    assert json.loads((shell.home / "trace/trace.json").read_text())["counts"]["events"] > 0
    assert sleeper.poll() is None


def has_begun(home: Path) -> bool:
    return (home / "begun").exists()


def is_probing(home: Path) -> bool:
    return any((home / "mount").glob("replayer-doctor-*/*/*"))


def is_writing(home: Path) -> bool:
    return any((home / "mount").glob("replayer-2*/save.*"))


@pytest.mark.parametrize(
    ("words", "is_working"),
    [
        (("run", "tiny.yaml", "-f", "slow.py", "--target", "mount"), has_begun),
        (("run", "tiny.yaml", "-t", "600s", "--target", "mount"), is_measuring),
        (("doctor", "mount"), is_probing),
        pytest.param(
            ("baseline", "save.fio", "--target", "mount"),
            is_writing,
            marks=pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
        ),
    ],
)
def test_what_a_script_began_in_the_background_ends_on_sigint_and_leaves_nothing(
    shell: Shell, until: Until, words: tuple[str, ...], is_working: Callable[[Path], bool]
) -> None:
    (shell.home / "save.fio").write_text(JOB)
    (shell.home / "slow.py").write_text(LOCUSTFILE)
    mount = shell.target()
    process = shell.start(*words, within=SCRIPT)
    until(lambda: is_working(shell.home))
    _, err = interrupted(shell, process)
    assert process.returncode == 4, err
    assert "interrupted" in err
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize(
    ("within", "said"), [(SCRIPT, "SIG_IGN"), ((), "default_int_handler")], ids=["script", "shell"]
)
def test_a_recorded_command_has_sigint_as_it_would_have_it_without_us(
    shell: Shell, within: tuple[str, ...], said: str
) -> None:
    (shell.home / "root").mkdir()
    command = "import signal; print(getattr(h := signal.getsignal(2), 'name', None) or h.__name__)"
    words = ("capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", command)
    out, err = shell.start(*words, within=within).communicate(timeout=120)
    assert out == f"{said}\n", err
