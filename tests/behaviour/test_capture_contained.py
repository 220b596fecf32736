"""Recordings with eBPF of programs that have a place of their own: a root, mounts, a filter."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.behaviour.probed import capture, load, needs_probe, until
from tests.behaviour.shell import IS_ROOT, Shell, compile_program, replay_in_order

pytestmark = [
    needs_probe,
    pytest.mark.skipif(not IS_ROOT, reason="only root changes roots and mounts"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare (util-linux) is missing"),
]

CHROOT = ("chroot", "root/jail", "/program")
UNSHARE = ("unshare", "--mount", "--pid", "--fork")
PIVOT = (
    "cd root/jail && mount --bind . . && cd . && cd ../jail && pivot_root . old && exec /program"
)
WAYS = {
    "a root": CHROOT,
    "mounts": ("unshare", "--mount", *CHROOT),
    "a container": (*UNSHARE, "--mount-proc=root/jail/proc", *CHROOT),
    "a container with a root that was swapped": (*UNSHARE, "sh", "-c", PIVOT),
}


@pytest.fixture
def jail(shell: Shell) -> Path:
    jail = shell.home / "root/jail"
    for name in ("data", "proc", "old"):
        (jail / name).mkdir(parents=True)
    (jail / "data/one").write_text("one\n")
    compile_program("contained.c", jail / "program", "-static")
    return jail


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS.keys())
def test_paths_of_a_program_with_its_own_root_are_those_of_the_files(
    shell: Shell, jail: Path, words: tuple[str, ...]
) -> None:
    done = capture(shell, "--", *words)
    assert done.code == 7, done.err
    assert (jail / "data/three").exists()
    document = load(shell)
    assert document["counts"]["lines_not_understood"] == 0
    assert document["counts"]["calls_with_unknown_directory"] == {}
    assert set(document["blind_spots"]) <= {"unshare"}
    ops = document["counts"]["ops"]
    assert (ops["mkdir"], ops["rename"], ops["getdents"], ops["write"]) == (1, 1, 2, 1)
    replayed = shell.run("replay", "trace", "--target", shell.target(), "--json", "--keep-used")
    results = replayed.document()["replay"]["results"]
    assert results["diverged"] == [], results["examples"]
    (made,) = shell.home.glob("mount/**/jail/data/three")
    assert made.stat().st_size == len("four")


KILLED = """
import ctypes, os, struct
lines = [(0x20, 0, 0, 0), (0x15, 0, 1, 84), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)]
text = b"".join(struct.pack("HBBI", *line) for line in lines)
program = ctypes.create_string_buffer(text)
wanted = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(program)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == libc.prctl(22, 2, ctypes.byref(wanted), 0, 0) == 0
os.mkdir("root/made")
os.rmdir("root/made")  # number 84: the filter kills for it
"""


def test_a_program_that_its_filter_kills_is_recorded_to_that_moment(shell: Shell) -> None:
    done = capture(shell, "--", sys.executable, "-c", KILLED)
    assert done.code == 128 + signal.SIGSYS
    assert (shell.home / "root/made").exists()
    assert load(shell)["counts"]["ops"] == {"mkdir": 1, "exit": 1}


PENDING = """
import fcntl, os
first, second = (os.open(name, os.O_RDWR) for name in ("root/first", "root/second"))
open("ready", "w").close()
fcntl.flock(first, fcntl.LOCK_EX)
os.stat("root/first")
open("done", "w").close()
fcntl.flock(second, fcntl.LOCK_EX)
"""


def test_calls_under_way_when_a_recording_begins_and_ends_are_told(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    first, second = ((shell.home / "root" / name).open("w") for name in ("first", "second"))
    fcntl.flock(first, fcntl.LOCK_EX)
    fcntl.flock(second, fcntl.LOCK_EX)
    with subprocess.Popen([sys.executable, "-c", PENDING], cwd=shell.home) as service:
        try:
            until((shell.home / "ready").exists)
            in_flock = Path(f"/proc/{service.pid}/syscall")
            until(lambda: in_flock.read_text().startswith("73 "))
            words = ("--recorder", "ebpf", "-o", "trace", "--root", "root", "-p", str(service.pid))
            process = shell.start("capture", *words, within=("setsid",))
            until(lambda: [*shell.home.glob(".trace.capture-*/log.bpf")])
            time.sleep(1)
            first.close()
            until((shell.home / "done").exists)
            time.sleep(0.2)
            os.kill(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        finally:
            service.kill()
            second.close()
    counts = load(shell)["counts"]
    assert counts["ops"] == {"inherit": 2, "flock": 1, "stat": 1}
    assert counts["calls_cut"] == {"cut by the end of the log": 1}


INSIDE = """
import os, time
os.chdir("/")
file = os.open(ROOT + "/log", os.O_CREAT | os.O_RDWR)
os.write(file, b"0123456789")
open(READY, "w").close()
while not os.path.exists(GO):
    time.sleep(0.01)
os.pread(file, 7, 0)
os.stat(ROOT + "/log")
os.mkdir(ROOT + "/made")
"""


@pytest.mark.parametrize("way", ["mounts", "chroot"])
def test_a_running_program_may_name_the_files_of_a_root_otherwise(shell: Shell, way: str) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "inside").mkdir()
    names = {name.upper(): str(shell.home / name) for name in ("ready", "go")}
    words: tuple[str, ...] = ()
    if way == "mounts":
        names["ROOT"] = str(shell.home / "inside")
        words = ("unshare", "--mount", "sh", "-c", 'mount --bind root inside && exec "$0" "$@"')
    else:
        names = {"READY": "/ready", "GO": "/go", "ROOT": "/root"}
    script = "\n".join(f"{name} = {text!r}" for name, text in names.items())
    if way == "chroot":
        script = f"import os\nos.chroot({str(shell.home)!r})\n{script}"
    program = (*words, sys.executable, "-S", "-E", "-c", script + INSIDE)
    with subprocess.Popen(program, cwd=shell.home) as service:
        try:
            until((shell.home / "ready").exists)
            process = shell.start(
                *("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root"),
                *("-p", str(service.pid)),
                within=("setsid",),
            )
            until(lambda: [*shell.home.glob(".trace.capture-*/log.bpf")])
            time.sleep(1)
            (shell.home / "go").touch()
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        finally:
            service.kill()
    ops = load(shell)["counts"]["ops"]
    assert (ops["inherit"], ops["pread"], ops["stat"], ops["mkdir"]) == (1, 1, 1, 1)


RECEIVING = """
import os, socket
here, there = socket.socketpair()
if os.fork() == 0:
    file = os.open("root/file", os.O_RDWR)
    socket.send_fds(here, [b"x"], [file])
    os._exit(0)
_, (file,), _, _ = socket.recv_fds(there, 10, 1)
os.wait()
os.read(file, 5)
os.pread(file, 3, 2)
os.close(file)
os.stat("root/file")
"""


def test_calls_on_a_descriptor_that_came_through_a_socket_are_counted_and_left_out(
    shell: Shell,
) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/file").write_text("0123456789")
    done = capture(shell, "--", sys.executable, "-S", "-E", "-c", RECEIVING)
    assert done.code == 0, done.err
    counts = load(shell)["counts"]
    assert counts["calls_with_unknown_file"] == {"pread64": 1, "read": 1}
    assert (counts["ops"]["open"], counts["ops"]["stat"]) == (1, 1)
    replayed = replay_in_order(shell, "asap")
    assert replayed.document()["replay"]["results"]["diverged"] == []


LOOKING = "import os, time\nwhile True:\n    os.stat('root')\n    time.sleep(0.01)"


def test_a_process_that_may_be_recorded_and_not_looked_into_is_named(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    with subprocess.Popen([sys.executable, "-c", LOOKING], cwd=shell.home) as service:
        process = shell.start(
            *("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root"),
            *("-p", str(service.pid)),
            within=("setsid", "setpriv", "--bounding-set=-all,+bpf,+perfmon", "--inh-caps=-all"),
        )
        until(lambda: [*shell.home.glob(".trace.capture-*/log.bpf")])
        time.sleep(1)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        service.kill()
    assert process.returncode == 0, err
    assert f"process {service.pid}: the working directory is not readable" in err
    assert load(shell)["counts"]["calls_with_unknown_directory"]["newfstatat"] > 1
