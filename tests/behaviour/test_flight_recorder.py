"""``replayer capture --ring``: the latest calls of a program, written on demand, replayed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replayer.supervisor import ECHO_S
from tests.behaviour.probed import load, needs_probe, until
from tests.behaviour.shell import Done, Shell
from tests.processes import children_of, is_there

pytestmark = needs_probe

SERVICE = """
import os, sys, time
os.chdir("root")
log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
shared = os.open("shared", os.O_CREAT | os.O_RDWR)
os.write(shared, b"x" * 100_000)
os.lseek(shared, 0, 0)
again = os.dup(shared)
open("early", "w").close()
if os.fork() == 0:
    name = "child"
else:
    name = "parent"
parent = os.getppid()
def request(turn):
    path = f"{name}-session-{turn % 3}"
    session = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.fstat(session)
    os.read(session, 4096)
    os.ftruncate(session, 0)
    os.pwrite(session, b"y" * (turn % 1000), 0)
    os.close(session)
    if os.read(again if turn % 2 else shared, 10) == b"":
        os.lseek(shared, 0, 0)
    os.write(log, b"a line\\n")
    os.mkdir(f"{name}-work"); os.chdir(f"{name}-work")
    open("note", "w").close(); os.rename("note", "../" + name + "-note")
    os.chdir(".."); os.rmdir(f"{name}-work")
    os.stat(name + "-note"); os.listdir("fixed")
turn = 0
while not os.path.exists("../stop") and (name == "parent" or os.getppid() == parent):
    request(turn)
    if turn == 5:
        open(f"../ready-{name}", "w").close()
    turn += 1
    time.sleep(0.01)
    if name == "parent" and os.path.exists("../hang"):
        os.close(os.open("fifo", os.O_RDONLY))
"""


@contextmanager
def service(shell: Shell) -> Iterator[int]:
    """Run two processes that change files all the time."""
    (shell.home / "root/fixed").mkdir(parents=True)
    (shell.home / "root/fixed/one").touch()
    os.mkfifo(shell.home / "root/fifo")
    with subprocess.Popen([sys.executable, "-c", SERVICE], cwd=shell.home) as process:
        try:
            until(
                lambda: all((shell.home / f"ready-{one}").exists() for one in ("parent", "child"))
            )
            yield process.pid
        finally:
            (shell.home / "stop").touch()
            process.kill()


class Flight:
    """A flight recorder that runs, and what it has said so far."""

    def __init__(self, shell: Shell, pid: int, *words: str) -> None:
        self.shell = shell
        said = shell.home / "said"
        with said.open("w") as file:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "replayer", "capture", "--recorder", "ebpf", "-q"),
                    *("--ring", "2s", "-o", "trace", "--root", "root", "-p", str(pid), *words),
                ],
                cwd=shell.home,
                stderr=file,
                stdout=file,
                start_new_session=True,
            )
        self._said = said
        until(lambda: "flight recorder (process " in self.said or self.process.poll() is not None)

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._said.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until it has printed that."""
        until(lambda: text in self.said or self.process.poll() is not None)
        assert text in self.said

    def end(self) -> int:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=120)


@contextmanager
def recorded(shell: Shell, *words: str) -> Iterator[Flight]:
    """Record the service, of which so much is gone that its begin is not kept."""
    with service(shell) as pid:
        flight = Flight(shell, pid, *words)
        try:
            time.sleep(5)
            yield flight
        finally:
            flight.process.kill()
            flight.process.wait()


def replays_as_recorded(shell: Shell, trace: str) -> Done:
    target = shell.target(f"for-{Path(trace).name}")
    done = shell.run("replay", trace, "--target", target, "--pace", "asap", "--rounds", "1")
    assert done.code in (0, 4), done.err  # 4: the machine was too busy to judge times
    assert "100 % as recorded, 0 diverged" in done.out
    return done


def test_a_signal_writes_the_last_seconds_and_the_recording_goes_on(shell: Shell) -> None:
    with recorded(shell) as flight:
        flight.process.send_signal(signal.SIGUSR1)
        flight.wait_for("trace: ")
        first = load(shell, "trace/capture.json")
        time.sleep(3)
        assert flight.end() == 0, flight.said
    assert "end of the recording: writing the last" in flight.said
    for trace in ("trace", "trace-2"):
        document = load(shell, f"{trace}/trace.json")
        assert document["counts"]["ops"]["rename"] > 20
        assert document["counts"]["ops"]["inherit"] >= 2
        assert document["counts"]["tree_repairs"]["unexplained"] == 0
        assert not [spot for spot in document["blind_spots"] if "lost" in spot]
        replays_as_recorded(shell, trace)
    assert first["flight"]["reason"] == "signal"
    assert 2e9 <= first["flight"]["kept_ns"] < 6e9
    assert not list(shell.home.glob(".trace*"))


def test_a_full_disk_is_told_at_once_and_what_is_kept_waits_for_room(shell: Shell) -> None:
    small = shell.home / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "none", small], check=True)
    try:
        with recorded(shell, "-o", "small/trace") as flight:
            assert "warning: " in flight.said
            assert "small: has 1.53 MB free, and a trace asks for 524 MB" in flight.said
            flight.process.send_signal(signal.SIGINT)
            flight.wait_for("still in memory: make room, and press Ctrl-C once more")
            subprocess.run(["mount", "-o", "remount,size=1g", small], check=True)
            time.sleep(2 * ECHO_S)  # the same signal once more at once is the first one's echo
            assert flight.end() == 0, flight.said
            replays_as_recorded(shell, "small/trace")
    finally:
        subprocess.run(["umount", small], check=True)


def test_dump_finds_the_recorder_and_prints_the_trace(shell: Shell) -> None:
    with recorded(shell, "--when", "open > 1h") as flight:
        done = shell.run("capture", "--dump")
        assert (done.code, done.out.strip()) == (0, str(shell.home / "trace")), done.err
        assert load(shell, "trace/capture.json")["flight"]["reason"] == "--dump"
        replays_as_recorded(shell, "trace")
        done = shell.run("capture", "--dump", str(flight.process.pid + 100_000))
        assert done.code == 2
        assert "is no flight recorder of this user" in done.err
        assert flight.process.poll() is None
        (recorder,) = children_of(flight.process.pid)
        flight.process.kill()
        flight.process.wait()
        until(lambda: not is_there(recorder))
    done = shell.run("capture", "--dump")
    assert done.code == 2
    assert "--dump: no flight recorder of this user runs" in done.err


def test_a_call_that_hangs_has_a_trace_written_while_it_hangs(shell: Shell) -> None:
    with recorded(shell, "--when", "open > 1s") as flight:
        begun_s = time.monotonic()
        (shell.home / "hang").touch()
        flight.wait_for("trace: ")
        fifo = shell.home / "root/fifo"
        assert f"--when open: openat {fifo} (thread" in flight.said
        assert f"not returned: openat {fifo} (thread" in flight.said
        time.sleep(3)
        told = flight.said.count("--when open:")
        assert told <= 1 + (time.monotonic() - begun_s) / 2  # one for each 2 s
        (shell.home / "hang").unlink()
        os.close(os.open(fifo, os.O_WRONLY))
        assert flight.end() == 0, flight.said
    facts = load(shell, "trace/capture.json")["flight"]
    (hung,) = [call for call in facts["pending"] if call["path"] == str(fifo)]
    assert hung["name"] == "openat"
    assert 1e9 < hung["lasted_ns"] < 60e9
    assert load(shell, "trace/trace.json")["counts"]["calls_cut"]["cut by the end of the log"] >= 1
    replays_as_recorded(shell, "trace")


@pytest.mark.nightly
def test_more_calls_than_fit_shorten_the_trace_and_not_the_memory(shell: Shell) -> None:
    script = (
        "import os, time\nopen('ready', 'w')\nend = time.time() + 60\n"
        "while time.time() < end:\n    os.stat('root/fixed')"
    )
    (shell.home / "root/fixed").mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", script], cwd=shell.home) as process:
        try:
            until((shell.home / "ready").exists)
            flight = Flight(shell, process.pid, "--ring", "1h", "--limit", "16MB")
            try:
                time.sleep(6)
                (working,) = children_of(flight.process.pid)
                before = memory_of(working)
                time.sleep(4)
                assert memory_of(working) - before < 20e6
                assert flight.end() == 0, flight.said
            finally:
                flight.process.kill()
                flight.process.wait()
        finally:
            process.kill()
    facts = load(shell, "trace/capture.json")
    assert facts["recorder"]["log_bytes"] <= 16_000_000
    assert facts["flight"]["is_short"] is True
    assert "and not 60 min: more did not fit into --limit, or was lost" in flight.said
    replays_as_recorded(shell, "trace")


def memory_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--ring", "5m", "--recorder", "strace", "-p", "1"), 2, "--ring needs eBPF: strace stops"),
        (("--ring", "5m", "--recorder", "ebpf", "--", "true"), 2, "and not a command"),
        (("--when", "open > 2s", "-p", "1"), 2, "--when has no effect without --ring"),
        (("--ring", "5m", "--when", "open", "-p", "1"), 2, "must be a call and a time"),
        (("--ring", "soon", "-p", "1"), 2, "a time such as"),
        (
            ("--ring", "5m", "--recorder", "ebpf", "--limit", "900TB", "-p", "{pid}"),
            3,
            "are available",
        ),
        (
            ("--ring", "5m", "--recorder", "ebpf", "--limit", "1MB", "-p", "{pid}"),
            2,
            "at least 16MB",
        ),
        (
            ("--ring", "5m", "--recorder", "ebpf", "--when", "nonsense > 2s", "-p", "{pid}"),
            2,
            "'nonsense' is no call that is recorded",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    shell: Shell, words: tuple[str, ...], code: int, says: str
) -> None:
    (shell.home / "root").mkdir()
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            own = [word.format(pid=process.pid) for word in words]
            done = shell.run("capture", "-o", "trace", "--root", "root", *own)
        finally:
            process.kill()
    assert done.code == code, done.err
    assert says in done.err
    assert not list(shell.home.glob("*trace*"))
