"""Captures on servers that stop answering: they end, and leave nothing in the kernel."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.behaviour.probed import needs_probe, until
from tests.behaviour.shell import Shell
from tests.behaviour.test_capture_refused import is_loaded, programs_of
from tests.behaviour.test_flight_recorder import replays_as_recorded
from tests.mounts.fleet import long
from tests.mounts.machine import CannotError
from tests.mounts.sshfs import Server, serve
from tests.processes import children_of

pytestmark = [pytest.mark.mounts, needs_probe]

END_S = 5  # two Ctrl-C, half a second apart, end it within two; the machine may be busy
LOOKING = "import os, time\nwhile True:\n    os.stat('root')\n    time.sleep(0.01)"


@dataclass
class Remote:
    """A server that can be frozen, its mount, and a folder to work in."""

    server: Server
    mount: Path
    home: Path

    def capture(self, *words: str | Path) -> "subprocess.Popen[str]":
        own = (sys.executable, "-m", "replayer", "capture")
        with (self.home / "said").open("w") as said:
            return subprocess.Popen(
                [*own, *map(str, words)],
                cwd=self.home,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                text=True,
            )

    @property
    def said(self) -> str:
        return (self.home / "said").read_text()

    def freeze(self) -> None:
        self.server.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.server.send(signal.SIGCONT)


@pytest.fixture
def remote(stack: ExitStack, tmp_path: Path) -> Iterator[Remote]:
    try:
        server = serve(stack, tmp_path / "place")
        mount = server.mount(stack, "one")
    except CannotError as error:
        pytest.skip(str(error))
    for root in (tmp_path / "root", mount / "root"):
        root.mkdir()
        (root / "file").write_text("x" * 100_000)
    remote = Remote(server, mount, tmp_path)
    yield remote
    remote.thaw()


def press_twice(process: "subprocess.Popen[str]") -> None:
    """Press Ctrl-C twice at the terminal of a capture and its command."""
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)


@long
@pytest.mark.parametrize("recorder", ["ebpf", "strace"])
def test_a_capture_whose_trace_is_on_a_frozen_server_ends_at_two_ctrl_c(
    remote: Remote, recorder: str
) -> None:
    with subprocess.Popen([sys.executable, "-c", LOOKING], cwd=remote.home) as service:
        words = ("-o", remote.mount / "trace", "--root", "root", "-p", str(service.pid))
        process = remote.capture("--recorder", recorder, *words)
        log = "log.bpf" if recorder == "ebpf" else "log.strace"
        until(lambda: [*remote.mount.glob(f".trace.capture-*/{log}")])
        time.sleep(2)
        (working,) = children_of(process.pid)
        programs = programs_of(working)
        remote.freeze()
        time.sleep(2)
        press_twice(process)
        assert process.wait(END_S) == 4
        assert "what was recorded until then is in " in remote.said
        assert f"process {working} hangs in the kernel" in remote.said
        assert bool(programs) == (recorder == "ebpf")
        until(lambda: not any(map(is_loaded, programs)))
        assert service.poll() is None
        service.kill()


@long
def test_a_killed_capture_whose_trace_is_on_a_frozen_server_leaves_nothing_attached(
    remote: Remote,
) -> None:
    with subprocess.Popen([sys.executable, "-c", LOOKING], cwd=remote.home) as service:
        words = ("-o", remote.mount / "trace", "--root", "root", "-p", str(service.pid))
        process = remote.capture("--recorder", "ebpf", *words)
        until(lambda: [*remote.mount.glob(".trace.capture-*/log.bpf")])
        time.sleep(2)
        (working,) = children_of(process.pid)
        programs = programs_of(working)
        assert len(programs) >= 5
        remote.freeze()
        time.sleep(2)
        process.kill()
        until(lambda: not any(map(is_loaded, programs)))
        service.kill()
        process.wait()


@long
@pytest.mark.parametrize("recorder", ["ebpf", "strace"])
def test_a_command_that_hangs_is_left_at_the_second_ctrl_c_and_its_trace_is_made(
    remote: Remote, recorder: str
) -> None:
    root = remote.mount / "root"
    script = f"cat {root}/file; echo > begun; sleep 2; cat {root}/file"
    words = ("-o", "trace", "--root", root, "--", "sh", "-c", script)
    process = remote.capture("--recorder", recorder, *words)
    until((remote.home / "begun").exists)
    remote.freeze()
    time.sleep(4)
    press_twice(process)
    assert process.wait(END_S) == 4
    assert "which hangs in the kernel" in remote.said
    facts = (remote.home / "trace/capture.json").read_text()
    assert '"exit_status": null' in facts


OPENING = """
import os, sys, time
while True:
    os.close(os.open(sys.argv[1], os.O_RDONLY))
    open("ready", "w").close()
    time.sleep(0.02)
"""


@long
def test_an_open_that_hangs_on_a_frozen_server_is_in_a_trace_that_replays(remote: Remote) -> None:
    root = remote.mount / "root"
    file = root / "file"
    with subprocess.Popen([sys.executable, "-c", OPENING, file], cwd=remote.home) as service:
        until((remote.home / "ready").exists)
        words = ("--ring", "5s", "--when", "open > 2s", "-o", "trace", "--root", root)
        process = remote.capture(*words, "-p", str(service.pid))
        until(lambda: "flight recorder (process " in remote.said)
        time.sleep(3)
        remote.freeze()
        until(lambda: "trace: " in remote.said)
        assert f"not returned: openat {file} (thread {service.pid})" in remote.said
        press_twice(process)
        process.wait(END_S)
        service.kill()
        remote.thaw()
    facts = json.loads((remote.home / "trace/capture.json").read_text())["flight"]
    (hung,) = facts["pending"]
    assert (hung["name"], hung["path"]) == ("openat", str(file))
    assert hung["lasted_ns"] > 2e9
    replays_as_recorded(Shell(remote.home), "trace")
