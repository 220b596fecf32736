"""Recordings with eBPF of programs that have a place of their own: a root, mounts, a filter."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.behaviour.probed import capture, load, needs_probe, until
from tests.behaviour.shell import IS_ROOT, Shell, compile_program, replay_in_order
from tests.processes import children_of

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
    assert set(document["blind_spots"]) <= {"unshare", "mounts on names below the roots"}
    ops = document["counts"]["ops"]
    assert (ops["mkdir"], ops["rename"], ops["getdents"], ops["write"]) == (1, 1, 2, 1)
    assert made_in_a_replay(shell).parts[-3:] == ("jail", "data", "three")


def record_waiting(
    shell: Shell, words: tuple[str, ...], roots: tuple[str, ...], group: Path | None = None
) -> None:
    """Attach to the program of a jail while it waits, and record it to its end."""
    started = subprocess.Popen(
        words, cwd=shell.home, stdin=subprocess.PIPE, env={**os.environ, "WAIT": "1"}
    )
    with started:
        until(lambda: named_program(started.pid))
        (waiting,) = named_program(started.pid)
        target = ("-p", str(waiting))
        if group is not None:
            (group / "cgroup.procs").write_text(str(waiting))
            target = ("--cgroup", str(group))
        given = [word for root in roots for word in ("--root", root)]
        ebpf = ("--recorder", "ebpf")
        process = shell.start("capture", *ebpf, "-o", "trace", *given, *target)
        until(lambda: [*shell.home.glob(".trace.capture-*/log.bpf")])
        time.sleep(1)
        assert started.stdin is not None
        started.stdin.write(b"x")
        started.stdin.close()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert started.returncode == 7


def named_program(pid: int) -> list[int]:
    known = Path(f"/proc/{pid}/comm")
    name = known.read_text() if known.exists() else ""
    found = [pid] if name == "program\n" else []
    return found + [one for child in children_of(pid) for one in named_program(child)]


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group without limits, in whichever version there is."""
    groups = Path("/sys/fs/cgroup")
    versions = (groups, groups / "unified", groups / "pids")
    group = next(one for one in versions if (one / "cgroup.procs").exists()) / "replayer-attached"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(str(error))
    yield group
    until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def made_in_a_replay(shell: Shell) -> Path:
    """Replay a trace as it was recorded; return the file that the program of a jail made."""
    replayed = shell.run("replay", "trace", "--target", shell.target(), "--json", "--keep-used")
    results = replayed.document()["replay"]["results"]
    assert results["diverged"] == [], results["examples"]
    (made,) = shell.home.glob("mount/**/three")
    assert made.stat().st_size == len("four")
    return made


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS.keys())
def test_the_whole_root_of_a_running_program_can_be_what_is_recorded(
    shell: Shell, jail: Path, words: tuple[str, ...]
) -> None:
    record_waiting(shell, words, (str(jail),))
    document = load(shell)
    ops = document["counts"]["ops"]
    assert (ops["mkdir"], ops["rename"], ops["getdents"], ops["write"]) == (1, 1, 2, 1)
    assert document["blind_spots"] == {}
    assert made_in_a_replay(shell).parts[-3:] == ("jail", "data", "three")


def test_a_container_is_recorded_by_its_control_group(
    shell: Shell, jail: Path, group: Path
) -> None:
    record_waiting(shell, (*UNSHARE, "sh", "-c", PIVOT), (str(jail),), group)
    assert made_in_a_replay(shell).parts[-3:] == ("jail", "data", "three")


VOLUME = f"mount --bind volume root/jail/data && {PIVOT.replace('--bind', '--rbind')}"


@pytest.mark.parametrize("others", [("volume",), ()], ids=["recorded", "not recorded"])
def test_what_a_container_has_mounted_in_its_root_is_not_taken_for_what_is_below(
    shell: Shell, jail: Path, others: tuple[str, ...]
) -> None:
    (shell.home / "volume").mkdir()
    (shell.home / "volume/one").write_text("one\n")
    words = (*UNSHARE, "sh", "-c", VOLUME)
    record_waiting(shell, words, (str(jail), *others))
    if others:
        assert made_in_a_replay(shell).parts[-2:] == ("volume", "three")
    else:
        counts = load(shell)["counts"]
        assert not {"mkdir", "rename", "write"} & counts["ops"].keys()
        assert counts["calls_out_of_scope"]["mkdir"] == 1


MOUNTING = (
    "mount --bind volume root/over && touch root/over/x && umount root/over && "
    "mount --bind root/of elsewhere && touch elsewhere/y && mount --bind root root && "
    "mount -o remount,ro,bind root && umount root"
)


def test_mounts_that_a_program_makes_are_blind_spots(shell: Shell) -> None:
    for name in ("root/over", "root/of", "volume", "elsewhere"):
        (shell.home / name).mkdir(parents=True)
    done = capture(shell, "--", "unshare", "--mount", "sh", "-e", "-c", MOUNTING)
    assert done.code == 0, done.err
    assert load(shell)["blind_spots"] == {
        "unshare": 1,
        "mounts on names below the roots": 3,
        "mounts of files below the roots elsewhere": 1,
    }


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
    document = load(shell)
    counts = document["counts"]
    assert counts["calls_with_unknown_file"] == {"pread64": 1, "read": 1}
    assert document["blind_spots"] == {"calls on descriptors whose opening was not recorded": 2}
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


def test_a_root_that_only_a_link_of_proc_leads_to_is_refused(shell: Shell, jail: Path) -> None:
    words = ("unshare", "--mount", "sh", "-c", f"mount -t tmpfs none {jail} && exec sleep 60")
    with subprocess.Popen(words, cwd=shell.home) as service:
        inside = Path(f"/proc/{service.pid}/root{jail}")
        until(lambda: not (inside / "data").exists())
        done = shell.run("capture", "-o", "trace", "--root", inside, "-p", str(service.pid))
        service.kill()
    assert done.code == 2
    assert f"--root {inside}: no name of this machine leads there" in done.err
