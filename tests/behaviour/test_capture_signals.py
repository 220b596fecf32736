"""How captures end: Ctrl-C, SIGTERM, processes that outlive their command, and ones attached to."""

import json
import lzma
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.shell import Process, Shell, Until
from tests.processes import children_of

COUNTING = """\
import os, signal, sys, time
caught = []
signal.signal(signal.SIGINT, lambda *_: caught.append("INT"))
signal.signal(signal.SIGTERM, lambda *_: caught.append("TERM"))
open("root/ready", "w").close()
while not caught:
    os.stat("root")
    time.sleep(0.01)
time.sleep(0.3)
open("root/caught", "w").write(" ".join(caught))
sys.exit(5)
"""

# Says in a file what it felt: a call that fails ends it.
SERVICE = """\
import os, sys, time
log = open("root/service.log", "a")
done = os.open("root/rounds", os.O_CREAT | os.O_WRONLY)
os.fork()
while True:
    os.stat("root")
    os.pwrite(done, b"%d" % time.monotonic_ns(), 0)
    log.write("line\\n")
    log.flush()
    time.sleep(0.01)
"""


def load(trace: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((trace / "trace.json").read_text())


def start(shell: Shell, recorder: str, *words: str | Path) -> Process:
    (shell.home / "root").mkdir(exist_ok=True)
    own = ("capture", "--recorder", recorder, "-o", "trace", "--root", "root")
    return shell.start(*own, *words)


def is_untraced(pid: int) -> bool:
    return "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text()


def is_recorded(shell: Shell, recorder: str, pid: int) -> bool:
    """Tell whether a recorder has attached to a process."""
    if recorder == "strace":
        return not is_untraced(pid)
    logs = shell.home.glob(".trace.capture-*/log.bpf")
    return any(b"/service.log" in log.read_bytes() for log in logs)  # what it had open


def ready(shell: Shell) -> bool:
    return (shell.home / "root/ready").exists()


@pytest.fixture
def service(shell: Shell, until: Until) -> Iterator[subprocess.Popen[bytes]]:
    (shell.home / "root").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE], cwd=shell.home, start_new_session=True
    )
    until((shell.home / "root/service.log").exists)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_once_and_what_was_recorded_is_kept(
    shell: Shell, until: Until, recorder: str, number: signal.Signals
) -> None:
    process = start(shell, recorder, "--", sys.executable, "-c", COUNTING)
    until(lambda: ready(shell))
    time.sleep(0.2)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert (shell.home / "root/caught").read_text() == number.name.removeprefix("SIG")
    assert "waiting for the command to end" in err
    counts = load(shell.home / "trace")["counts"]
    assert counts["ops"]["stat"] > 1
    assert counts["lines_not_understood"] == 0


def test_ctrl_c_reaches_the_command_once_and_progress_is_shown_on_a_terminal(
    shell: Shell, until: Until, recorder: str
) -> None:
    (shell.home / "root").mkdir()
    words = ["-m", "replayer", "capture", "--recorder", recorder, "-o", "trace", "--root", "root"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.home)
        command = [*words, "--", sys.executable, "-c", COUNTING]
        os.execv(sys.executable, [sys.executable, *command])  # noqa: S606 - below a terminal
    until(lambda: ready(shell))
    time.sleep(1.2)
    os.write(terminal, b"\x03")
    shown = b""
    try:
        while block := os.read(terminal, 4096):
            shown += block
    except OSError:  # EIO: nobody is left at the other end
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5, shown
    os.close(terminal)
    assert (shell.home / "root/caught").read_text() == "INT"
    assert b"recording 0:0" in shown
    assert b"about " in shown
    assert (shell.home / "trace/trace.json").exists()


def test_processes_that_outlive_their_command_are_named_and_end_on_a_signal(
    shell: Shell, until: Until, recorder: str
) -> None:
    script = "(setsid sh -c 'while :; do : < root/file; echo >> turns; sleep 0.05; done') & exit 6"
    (shell.home / "root").mkdir()
    (shell.home / "root/file").touch()
    process = start(shell, recorder, "--", "sh", "-c", script)
    assert process.stderr is not None
    told = process.stderr.readline()
    assert "the command has ended; its descendants are still recorded" in told
    turns = shell.home / "turns"  # beside the root: not recorded
    until(lambda: turns.exists() and turns.stat().st_size >= 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 6, err
    assert "ending all recorded processes" in err
    assert load(shell.home / "trace")["counts"]["ops"]["open"] >= 2


def test_an_attached_service_goes_on_unharmed_after_ctrl_c(
    shell: Shell, until: Until, recorder: str, service: subprocess.Popen[bytes]
) -> None:
    capturing = start(shell, recorder, "-p", str(service.pid), "--keep-raw")
    until(lambda: is_recorded(shell, recorder, service.pid))
    time.sleep(0.7)
    capturing.send_signal(signal.SIGINT)
    _, err = capturing.communicate(timeout=60)
    assert capturing.returncode == 0, err
    assert is_untraced(service.pid)
    before = (shell.home / "root/service.log").stat().st_size
    until(lambda: (shell.home / "root/service.log").stat().st_size > before + 50)
    assert service.poll() is None

    counts = load(shell.home / "trace")["counts"]
    assert counts["threads"] == 2, "the child that was there before is recorded, too"
    assert counts["ops"]["pwrite"] > 5, "descriptors from before are known"
    assert counts["ops"]["stat"] > 5, "the working directory is known"
    assert counts["calls_with_unknown_file"] == {}
    assert counts["lines_not_understood"] == 0
    facts = json.loads((shell.home / "trace/capture.json").read_text())
    assert facts["kind"] == "attached"
    links = [one["link"] for one in facts["processes_before"][0]["descriptors"]]
    assert str(shell.home / "root/rounds") in links


@pytest.mark.parametrize("how", ["the log's folder is removed", "it is killed"])
def test_a_service_is_let_go_of_whatever_ends_its_recording(
    shell: Shell, until: Until, recorder: str, service: subprocess.Popen[bytes], how: str
) -> None:
    capturing = start(shell, recorder, "-p", str(service.pid))
    until(lambda: is_recorded(shell, recorder, service.pid))
    time.sleep(0.7)
    if how == "it is killed":
        capturing.kill()
    else:
        (folder,) = shell.home.glob(".trace.capture-*")
        shutil.rmtree(folder)
    _, err = capturing.communicate(timeout=60)
    until(lambda: is_untraced(service.pid))
    before = (shell.home / "root/service.log").stat().st_size
    until(lambda: (shell.home / "root/service.log").stat().st_size > before + 50)
    assert service.poll() is None
    if how != "it is killed":
        assert capturing.returncode == 3, err
        assert "detaching" in err
        assert "the recording is lost" in err
        assert "Traceback" not in err


def test_a_command_whose_recording_is_lost_goes_on_to_its_end(
    shell: Shell, until: Until, recorder: str
) -> None:
    process = start(shell, recorder, "--", sys.executable, "-c", COUNTING)
    until(lambda: ready(shell))
    (folder,) = shell.home.glob(".trace.capture-*")
    shutil.rmtree(folder)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (shell.home / "root/caught").read_text() == "TERM"
    assert process.returncode == 3, err
    assert "recording stops" in err
    assert "the command ended with exit status 5" in err
    assert "the recording is lost" in err
    assert not (shell.home / "trace").exists()


HOLDER = """
import os, threading
data = os.open("root/data", os.O_RDONLY)
os.lseek(data, 100, os.SEEK_SET)
log = os.open("root/service.log", os.O_WRONLY | os.O_APPEND)
go = threading.Event()
def use():
    go.wait()
    for _ in range(20):
        os.read(data, 10)
        os.lseek(data, 0, os.SEEK_CUR)
threads = [threading.Thread(target=use)]
threads[0].start()
print("ready", flush=True)
input()
os.write(log, b"more")
go.set()
threads[0].join()
os.lseek(log, 0, os.SEEK_CUR)
"""


def test_what_is_open_already_keeps_its_place_its_flags_and_its_sharers(
    shell: Shell, until: Until, recorder: str
) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/data").write_bytes(bytes(1000))
    (shell.home / "root/service.log").write_text("before")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        cwd=shell.home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        capturing = start(shell, recorder, "-p", str(holder.pid))
        tasks = [int(task.name) for task in Path(f"/proc/{holder.pid}/task").iterdir()]
        until(lambda: all(is_recorded(shell, recorder, task) for task in tasks))
        holder.stdin.write(b"\n")
        holder.stdin.close()
        _, err = capturing.communicate(timeout=60)
    assert capturing.returncode == 0, err
    done = shell.run("replay", "trace", "--target", shell.target(), "--json")
    results = done.document()["replay"]["results"]
    assert results["diverged"] == []
    assert results["compared"] == 42
    assert load(shell.home / "trace")["counts"]["ops"]["inherit"] == 2


WRITER = """
import os, time
out = os.open("root/out", os.O_WRONLY | os.O_CREAT)
print("ready", flush=True)
while True:
    os.write(out, b"x")
    os.lseek(out, 0, os.SEEK_CUR)
    time.sleep(0.002)
"""


def test_a_file_that_is_being_written_is_noted_where_the_log_begins(
    shell: Shell, until: Until
) -> None:
    (shell.home / "root").mkdir()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER], cwd=shell.home, stdout=subprocess.PIPE
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        pid = str(writer.pid)
        capturing = start(shell, "strace", "-p", pid, "--keep-raw")
        until(lambda: not is_untraced(writer.pid))
        time.sleep(1)
        capturing.send_signal(signal.SIGINT)
        _, err = capturing.communicate(timeout=60)
        writer.kill()
    assert capturing.returncode == 0, err
    (process,) = json.loads((shell.home / "trace/capture.json").read_text())["processes_before"]
    (noted,) = (one for one in process["descriptors"] if one["link"].endswith("root/out"))
    with lzma.open(shell.home / "trace/raw/log.strace.xz", "rt") as file:
        lines = file.readlines()
    seeks = [index for index, line in enumerate(lines) if " lseek(" in line]
    writes = sum(" write(" in line for line in lines[: seeks[0]])
    assert noted["position"] == int(lines[seeks[0]].rpartition(" = ")[2].split()[0]) - writes


def test_attaching_ends_with_the_process(
    shell: Shell, until: Until, recorder: str, service: subprocess.Popen[bytes]
) -> None:
    capturing = start(shell, recorder, "-p", str(service.pid))
    until(lambda: is_recorded(shell, recorder, service.pid))
    time.sleep(0.3)
    os.killpg(service.pid, signal.SIGTERM)
    _, err = capturing.communicate(timeout=60)
    assert capturing.returncode == 0, err
    assert (shell.home / "trace/trace.json").exists()


def test_a_process_is_not_traced_twice(
    shell: Shell, until: Until, service: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(service.pid)]) as other:
        until(lambda: not is_untraced(service.pid))
        words = ("capture", "--recorder", "strace", "-o", "trace", "--root", "root")
        done = shell.run(*words, "-p", str(service.pid))
        other.send_signal(signal.SIGINT)
    assert done.code == 3
    assert f"is already traced by process {other.pid}" in done.err
    assert not list(shell.home.glob(".trace*"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGSEGV])
def test_a_command_that_dies_of_a_signal_is_not_taken_for_its_tracer(
    shell: Shell, recorder: str, number: signal.Signals
) -> None:
    (shell.home / "root").mkdir()
    words = ("capture", "--recorder", recorder, "-o", "trace", "--root", "root", "--")
    done = shell.run(*words, "sh", "-c", f"kill -{number:d} $$")
    assert done.code == 128 + number
    assert "strace" not in done.err
    assert (shell.home / "trace/trace.json").exists()


def test_a_tracer_that_was_killed_is_told_and_what_it_recorded_is_kept(
    shell: Shell, until: Until
) -> None:
    process = start(shell, "strace", "--", sys.executable, "-c", COUNTING)
    until(lambda: ready(shell))
    (working,) = children_of(process.pid)
    (strace,) = children_of(working)
    (command,) = children_of(strace)
    os.kill(strace, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + 9
    assert "strace was killed by signal 9" in err
    assert (shell.home / "trace/trace.json").exists()
    until(lambda: not Path(f"/proc/{command}/fd").exists())  # ENOSYS ended it
