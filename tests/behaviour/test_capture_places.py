"""Captures: beside the roots, whatever becomes of the working directory, and with all there is."""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from replayer.trace.reading import load_history, load_trace
from tests.behaviour.shell import Shell


def test_a_program_that_lists_the_root_sees_nothing_of_ours(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = shell.run("capture", "-o", "root/trace", "--root", "root", "--", "find", "root")
    assert done.out == "root\nroot/a\n"
    replayed = shell.run("replay", "root/trace", "--target", shell.target(), "--json")
    assert replayed.document()["replay"]["results"]["diverged"] == []


def test_a_root_in_shared_memory_has_what_was_open_there_before(shell: Shell) -> None:
    with TemporaryDirectory(dir="/dev/shm", prefix="replayer-test-") as root:
        out = Path(root) / "out"
        out.write_text("before")
        with out.open("ab") as appended:
            words = ["capture", "-o", "trace", "--root", root, "--", "sh", "-c", "echo 1234"]
            subprocess.run(
                [sys.executable, "-m", "replayer", *words],
                cwd=shell.home,
                stdout=appended,
                check=True,
                timeout=60,
            )
    events = load_trace(shell.home / "trace")["counts"]["events"]
    found = load_history(shell.home / "trace", events - 2)  # the last one is the shell's end
    (flags,) = [event["flags"] for event in found if event["op"] == "inherit"]
    assert flags & os.O_APPEND


def test_a_trace_beside_the_root_is_not_taken_for_one_in_it(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = shell.run("capture", "-o", "root/../trace", "--root", "root", "--", "cat", "root/a")
    assert done.code == 0
    assert "is inside the root" not in done.err


@pytest.mark.parametrize(
    "script",
    ["cd ..; rm -rf root; mkdir root; exit 7", "cd ..; mv root old; cp -r old root; exit 7"],
)
def test_a_command_may_replace_the_directory_that_it_was_started_in(
    shell: Shell, script: str
) -> None:
    root = shell.home / "root"
    root.mkdir()
    (root / "a").write_text("a")
    words = ["capture", "-o", "../trace", "--root", ".", "--", "bash", "-c", script]
    process = subprocess.run(
        [sys.executable, "-m", "replayer", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 7, process.stderr
    assert (shell.home / "trace/trace.json").exists()


UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork")


def test_processes_in_a_namespace_of_their_own_have_what_their_parents_had(shell: Shell) -> None:
    if (
        shutil.which("unshare") is None
        or subprocess.run([*UNSHARE, "true"], check=False).returncode
    ):
        pytest.skip("needs unshare (util-linux), and the right to make namespaces")
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("one\ntwo\n")
    script = f"exec 3<root/a; {' '.join(UNSHARE)} sh -c '(read x; read y) <&3; true'"
    done = shell.run("capture", "-o", "trace", "--root", "root", "--", "sh", "-c", script)
    assert done.code == 0, done.err
    counts = json.loads((shell.home / "trace/trace.json").read_text())["counts"]
    assert "inherit" not in counts["ops"]
    assert counts["ops"].get("close", 0) + counts["ops"].get("close_exit", 0) == 1
    replayed = shell.run("replay", "trace", "--target", shell.target(), "--json")
    assert replayed.document()["replay"]["results"]["diverged"] == []


SPECIAL = """
cd root; ls; mv old new; ls -l; rm new/pipe
mkfifo fifo; (echo hi >fifo &); cat fifo; mv fifo new/fifo; ls new; rm new/fifo
python3 -c '
import os, socket
one = socket.socket(socket.AF_UNIX)
one.bind("a socket")
os.rename("a socket", "b"); os.stat("b"); os.link("b", "c"); os.unlink("b"); print(os.listdir())
'
"""


def test_fifos_and_sockets_are_there_in_replays(shell: Shell) -> None:
    (shell.home / "root/old").mkdir(parents=True)
    os.mkfifo(shell.home / "root/old/pipe")
    (shell.home / "root/old/file").write_text("content")
    done = shell.run(
        "capture", "-o", "trace", "--root", "root", "--keep-raw", "--", "bash", "-c", SPECIAL
    )
    assert done.code == 0, done.err
    replayed = shell.run("replay", "trace", "--target", shell.target(), "--json")
    results = replayed.document()["replay"]["results"]
    assert results["diverged"] == []
    assert results["omitted"] == []
    counts = json.loads((shell.home / "trace/trace.json").read_text())["counts"]
    assert counts["ops"]["mknod"] == 2
    assert counts["calls_not_representable"]["openat (fifo, socket or device)"] == 2


def test_a_listing_behind_a_link_that_leads_out_is_a_blind_spot_and_no_divergence(
    shell: Shell,
) -> None:
    root = shell.home / "root"
    root.mkdir()
    (root / "file").touch()
    around = shell.home / "around"
    around.mkdir()
    for name in ("a", "b", "c"):
        (around / name).touch()
    (root / "up").symlink_to("../around")
    script = "ls root/up; ls root/up/; cat root/up/a"
    words = ("capture", "-o", "trace", "--root", "root", "--", "sh", "-c", script)
    assert shell.run(*words).code == 0
    blind = json.loads((shell.home / "trace/trace.json").read_text())["blind_spots"]
    assert blind["entries of directories outside of the roots"] == 4
    done = shell.run("replay", "trace", "--target", shell.target(), "--json")
    assert done.document()["replay"]["results"]["diverged"] == []


IN_PROC = """
import os
os.chdir("root"); open("f", "w").write("x")
held = os.open("f", os.O_RDONLY)
for name in (f"/proc/self/fd/{held}", f"/proc/{os.getpid()}/fd/{held}", f"/dev/fd/{held}"):
    os.readlink(name); os.lstat(name); os.stat(name)
    os.close(os.open(name, os.O_RDONLY)); os.open(name, os.O_PATH | os.O_NOFOLLOW)
os.stat("f")
"""
REMOVED = """
import os
os.chdir("root"); os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
try: open("z", "w")
except OSError: pass
os.stat("."); os.listdir("."); os.stat(".."); os.chdir(".."); os.stat(".")
"""
DANGLING = """
import os
def tries(call, *given):
    try: call(*given)
    except OSError as error: print(given[0], error.errno)
def adds(name):
    with open(name, "a") as file: file.write("x" * 500)
os.chdir("root"); os.mkdir("d"); os.symlink("d", "dd")
adds("before"); os.stat("target")
os.symlink("log.1", "log"); tries(os.stat, "log.1"); adds("log"); os.stat("log.1"); os.stat("log")
os.rename("log.1", "old"); tries(os.stat, "log"); adds("log"); os.stat("old"); os.unlink("old")
os.symlink("log.2", "now"); tries(open, "now")
os.open("now", os.O_CREAT | os.O_WRONLY); os.stat("log.2")
os.symlink("c2", "c1"); os.symlink("c3", "c2"); adds("c1"); os.stat("c3"); os.readlink("c1")
os.symlink("dd/in", "through"); adds("through"); os.stat("d/in")
os.unlink("d/in"); tries(os.stat, "through")
os.symlink(os.path.abspath("whole"), "absolute"); adds("absolute"); os.stat("whole")
os.symlink(os.path.abspath("../beside"), "out"); adds("out"); os.stat("out")
os.symlink("no/x", "none")
for flags in (0, os.O_EXCL, os.O_NOFOLLOW): tries(os.open, "none", flags | os.O_CREAT | os.O_WRONLY)
for call in (os.mkdir, os.mkfifo, os.chdir): tries(call, "none")
tries(os.truncate, "none", 3); tries(os.symlink, "x", "none"); os.unlink("none")
"""


@pytest.mark.parametrize(
    "script", [IN_PROC, REMOVED, DANGLING], ids=["proc", "removed", "dangling"]
)
def test_names_that_lead_elsewhere_lead_there_in_a_replay(shell: Shell, script: str) -> None:
    root = shell.home / "root"
    root.mkdir()
    (root / "before").symlink_to("target")
    words = ["capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", script]
    assert shell.run(*words).code == 0
    mount = shell.target()
    for load in (("-u", "1"), ("-u", "1", "--loops", "3"), ("-u", "3", "--loops", "2")):
        done = shell.run("replay", "trace", "--target", mount, *load, "--json")
        found = done.document()["replay"]["results"]
        assert found["diverged"] == [], found["examples"][:1]
        assert found["compared"] == found["matched"] > 0


def test_a_file_that_is_made_behind_a_link_lies_there_in_a_replay(shell: Shell) -> None:
    root = shell.home / "root"
    root.mkdir()
    (root / "link").symlink_to("target")
    words = ["capture", "-o", "trace", "--root", "root", "--", "sh", "-c", "echo hello >>root/link"]
    assert shell.run(*words).code == 0
    mount = shell.target()
    shell.run("replay", "trace", "--target", mount, "--keep-used")
    (link,) = mount.rglob("link")
    assert link.is_symlink()
    assert (link.parent / "target").stat().st_size == len("hello\n")


LOGS = {"ebpf": "trace/raw/log.bpf.xz", "strace": "trace/raw/log.strace.xz"}
CLOSED_RANGE = {
    # The number of the call, and a record of a call.
    "ebpf": re.compile(rb".." + (436).to_bytes(2, "little") + rb"\0", re.DOTALL),
    "strace": re.compile(rb" close_range\(\d+, \d+, 0\) += 0 "),
}
CLOSES_A_RANGE = """
import ctypes, os
file = os.open("root/a", os.O_RDONLY)
(closed, tell), (end, let_end) = os.pipe(), os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).syscall(436, file, file, 0)  # close_range, on every architecture
    os.write(tell, b"x")
    os.read(end, 1)
    os._exit(0)
os.read(closed, 1)
os.close(file)
os.write(let_end, b"x")
os.wait()
"""


def test_a_range_of_descriptors_that_a_child_closes_is_closed(shell: Shell, recorder: str) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    words = ["capture", "--recorder", recorder, "-o", "trace", "--root", "root", "--keep-raw", "--"]
    done = shell.run(*words, sys.executable, "-c", CLOSES_A_RANGE)
    assert done.code == 0, done.err
    log = lzma.decompress((shell.home / LOGS[recorder]).read_bytes())
    assert CLOSED_RANGE[recorder].search(log)
    ops = load_trace(shell.home / "trace")["counts"]["ops"]
    assert ops == {"open": 1, "close": 1, "exit": 1}


def test_the_umask_of_a_command_is_known_when_its_recording_is_compiled(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    in_the_way = "mkdir trace root/made; exit 7"
    words = ["capture", "-o", "trace", "--root", "root", "--", "sh", "-c", in_the_way]
    done = subprocess.run(
        [sys.executable, "-m", "replayer", *words],
        cwd=shell.home,
        capture_output=True,
        text=True,
        umask=0o027,
        check=False,
        timeout=60,
    )
    again = next(line for line in done.stderr.splitlines() if "replayer import" in line)
    assert "--umask 027" in again
    (shell.home / "trace").rmdir()
    assert shell.run(*again.split()[2:]).code == 0
