"""The user's own command between laying out and the first user: it fails, hangs, and lies."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.behaviour.shell import IS_ROOT, Done, Shell, Until
from tests.behaviour.test_run_signals import run_in_terminal, runs
from tests.processes import is_there

WORDS = ("run", "look.yaml", "--cache", "cold")


@pytest.fixture
def mount(shell: Shell) -> Path:
    return shell.target()


def remounted(shell: Shell, mount: Path, command: str) -> Done:
    return shell.run(*WORDS, "--target", mount, "--remount-command", command)


def test_it_is_run_for_each_mount_point(shell: Shell, mount: Path) -> None:
    done = remounted(shell, mount, f'echo "$REPLAYER_PATH" >> {shell.home}/log')
    assert done.went_well, done.err
    assert (shell.home / "log").read_text() == f"{mount}\n"


def test_one_that_leaves_a_daemon_with_its_output_is_not_waited_for(
    shell: Shell, mount: Path
) -> None:
    done = remounted(shell, mount, f"sleep 600 & echo $! > {shell.home}/daemon")
    os.kill(int((shell.home / "daemon").read_text()), signal.SIGKILL)
    assert done.went_well, done.err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("echo trying; echo no such server >&2; exit 32", "failed with 32: no such server"),
        (r"printf 'gone: \377\n' >&2; exit 1", "failed with 1: gone: \ufffd"),
        ("kill -9 $$", "failed with -9"),
    ],
)
def test_one_that_fails_ends_the_run(shell: Shell, mount: Path, command: str, says: str) -> None:
    done = remounted(shell, mount, command)
    assert done.code == 3, done.err
    assert says in done.err
    assert list(mount.iterdir()) == []


def test_ctrl_c_ends_it_with_all_that_it_has_started(
    shell: Shell, mount: Path, until: Until
) -> None:
    started = shell.home / "started"
    command = f"sleep 600 & echo $! > {started}.new; mv {started}.new {started}; wait"
    process = shell.start(*WORDS, "--target", mount, "--remount-command", command)
    until(started.exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert f"interrupted while waiting for the remount command of {mount}" in err
    until(lambda: not is_there(int(started.read_text())))
    assert list(mount.iterdir()) == []


def read_terminal(terminal: int, until_says: bytes = b"\0") -> bytes:
    """Read what a terminal shows until it says something, or until nobody has it open."""
    shown = b""
    with suppress(OSError):  # of Linux, once nobody else has it open
        while until_says not in shown and (more := os.read(terminal, 65536)):
            shown += more
    return shown


def test_it_may_ask_for_a_password_on_the_terminal(shell: Shell, mount: Path) -> None:
    asks = "printf 'password: ' > /dev/tty; read -r word < /dev/tty"
    command = f'{asks}; echo "$word" > {shell.home}/word'
    cold = ("--cache", "cold", "--remount-command", command)
    pid, terminal = run_in_terminal(shell, mount, "1s", *cold)
    shown = read_terminal(terminal, b"password: ")
    os.write(terminal, b"open sesame\n")
    shown += read_terminal(terminal)
    os.waitpid(pid, 0)
    (run,) = runs(shell.home)
    assert run["status"] == "finished", shown
    assert (shell.home / "word").read_text() == "open sesame\n"
    assert b"laying out" not in shown.partition(b"password: ")[0].rpartition(b"\n")[2]


def test_ctrl_c_in_the_terminal_ends_it_with_all_that_it_has_started(
    shell: Shell, mount: Path, until: Until
) -> None:
    started = shell.home / "started"
    # The shell that has started it ends of the key by itself, and leaves it without a parent.
    command = f"sleep 600 & echo $! > {started}.new; mv {started}.new {started}; wait"
    pid, terminal = run_in_terminal(
        shell, mount, "1s", "--cache", "cold", "--remount-command", command
    )
    until(started.exists)
    os.write(terminal, b"\x03")
    shown = read_terminal(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 4, shown
    assert b"interrupted while waiting for the remount command" in shown
    assert not is_there(int(started.read_text()))
    assert list(mount.iterdir()) == []


@pytest.mark.skipif(not IS_ROOT, reason="mounting needs root")
class TestMountsThatGo:
    @pytest.fixture
    def small(self, mount: Path) -> Iterator[Path]:
        subprocess.run(["mount", "-t", "tmpfs", "none", mount], check=True)
        yield mount
        subprocess.run(["umount", "-q", mount], check=False)

    def test_the_folder_on_a_mount_that_did_not_come_back_is_named(
        self, shell: Shell, small: Path
    ) -> None:
        done = remounted(shell, small, 'umount "$REPLAYER_PATH"; exit 32')
        assert done.code == 3
        assert "failed with 32" in done.err
        (line,) = (each for each in done.err.splitlines() if each.startswith("left behind"))
        where = f"{small}/replayer-"
        assert line.startswith(
            f"left behind (its mount is gone); remove it with: replayer clean {where}"
        )
