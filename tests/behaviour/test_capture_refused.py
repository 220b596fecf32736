"""Recordings with eBPF that cannot be: one clear line, strace offered, nothing left attached."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from replayer import _native
from replayer.capture.ebpf import EbpfRecorder
from replayer.capture.refusal import TracerError
from tests.behaviour.probed import capture, load, needs_probe, until
from tests.behaviour.shell import IS_ROOT, Shell
from tests.processes import children_of

pytestmark = [needs_probe, pytest.mark.skipif(not IS_ROOT, reason="only root mounts and drops")]

WORDS = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root", "--")
RING_BYTES = 1 << 20
PROGRAM_BY_NUMBER = 13  # BPF_PROG_GET_FD_BY_ID, bpf(2)
BPF = 321


def is_loaded(program: int) -> bool:
    asked = ctypes.create_string_buffer(program.to_bytes(4, sys.byteorder), 128)
    file = int(ctypes.CDLL(None).syscall(BPF, PROGRAM_BY_NUMBER, asked, len(asked)))
    if file >= 0:
        os.close(file)
    return file >= 0


def programs_of(pid: int) -> list[int]:
    infos = Path(f"/proc/{pid}/fdinfo").iterdir()
    found = (re.search(r"^prog_id:\s+(\d+)$", info.read_text(), re.MULTILINE) for info in infos)
    return [int(match[1]) for match in found if match is not None]


def refused(shell: Shell, *within: str) -> str:
    (shell.home / "root").mkdir()
    process = shell.start(*WORDS, "touch", "root/made", within=within)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert not [*shell.home.glob("*trace*"), *shell.home.glob("root/*")]
    said = err.splitlines()
    assert len(said) == 2, err
    assert said[1].startswith("hint: needed: ")
    assert said[1].endswith("; or record with --recorder strace")
    return said[0]


def test_without_a_description_of_the_kernel_it_says_so(shell: Shell) -> None:
    hide = 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"'
    said = refused(shell, "unshare", "--mount", "sh", "-c", hide)
    assert "the kernel does not describe itself (/sys/kernel/btf/vmlinux is missing)" in said


def said_by(recorder: EbpfRecorder, prepare: Callable[[], object]) -> str:
    """Ask a recorder whether it works, in a child of this process that was prepared."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare()
            recorder.check()
            os.write(writes, b"it works")
        except TracerError as error:
            os.write(writes, f"{error}\n{error.hint}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_an_ordinary_user_is_refused(tmp_path: Path) -> None:
    def become_nobody() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    said = said_by(EbpfRecorder(tmp_path, 1), become_nobody)
    assert "eBPF cannot be used: Operation not permitted" in said
    assert "CAP_BPF and CAP_PERFMON" in said


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of 100 MB, in whichever version there is."""
    groups = Path("/sys/fs/cgroup")
    first = (groups / "memory/memory.limit_in_bytes").exists()
    group = (groups / "memory" if first else groups) / f"replayer-test-{os.getpid()}"
    limit = group / ("memory.limit_in_bytes" if first else "memory.max")
    try:
        group.mkdir()
        if not limit.exists():
            pytest.skip("no control groups that limit memory")
        limit.write_text("100M")
        yield group
    except OSError as error:
        pytest.skip(str(error))
    finally:
        with suppress(OSError):
            group.rmdir()


def test_a_ring_that_memory_has_no_room_for_is_refused(tmp_path: Path, small_group: Path) -> None:
    def move() -> None:
        (small_group / "cgroup.procs").write_text(str(os.getpid()))

    said = said_by(EbpfRecorder(tmp_path, 1, 512 * RING_BYTES), move)
    assert "eBPF cannot be used: Cannot allocate memory" in said
    assert "needed: more memory for its ring" in said


def test_a_process_that_has_ended_is_named(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    done = shell.run(*WORDS[:-1], "-p", str(ended.pid))
    assert done.code == 2
    assert f"-p {ended.pid}: no such process" in done.err


def test_processes_that_end_before_they_are_attached_to_leave_an_empty_recording(
    tmp_path: Path,
) -> None:
    recording = _native.ProbeRecording(tmp_path / "log.bpf", RING_BYTES, 1 << 30)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    recording.attach_to([ended.pid])
    assert json.loads(recording.progress())["live"] == 0
    recording.finish()


def test_two_recordings_at_once_both_hold_all_of_their_own(shell: Shell) -> None:
    inner = (sys.executable, "-m", "replayer", *WORDS[:3], "-o", "inner", *WORDS[5:])
    script = "cat root/a >/dev/null; cp root/a root/b"
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = capture(shell, "--", *inner, "sh", "-c", script)
    assert done.code == 0, done.err
    outer, inside = load(shell)["counts"]["ops"], load(shell, "inner/trace.json")["counts"]["ops"]
    assert {"open", "read", "close"} <= inside.keys()
    assert all(outer[op] >= count for op, count in inside.items())
    assert load(shell, "inner/trace.json")["blind_spots"] == {}


def test_a_full_disk_ends_the_recording_and_not_the_command(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    script = "import os\nfor n in range(45_000): os.stat('root')\nopen('root/done', 'w')"
    words = (*WORDS[:3], "-o", "small/trace", *WORDS[5:], sys.executable, "-c", script)
    small = 'mount -t tmpfs -o size=4m none small && exec "$0" "$@"'
    (shell.home / "small").mkdir()
    process = shell.start(*words, within=("unshare", "--mount", "sh", "-c", small))
    _, err = process.communicate(timeout=60)
    assert (shell.home / "root/done").exists()
    assert process.returncode == 0, err
    assert "bytes of the disk free: later calls were not recorded" in err


def test_a_log_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=True)
    try:
        recording = _native.ProbeRecording(small / "log.bpf", 16 * RING_BYTES, 1 << 40)
        recording.arm()
        script = "import os\nfor n in range(45_000): os.stat('/')"
        subprocess.run([sys.executable, "-c", script], check=True)
        until(lambda: json.loads(recording.progress())["live"] == 0)
        recording.finish()
        told = json.loads(recording.progress())
    finally:
        subprocess.run(["umount", small], check=True)
    assert told["is_full"]
    assert "No space left on device" in told["trouble"]


def test_a_killed_recorder_leaves_no_program_in_the_kernel(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    script = "touch root/begun; sleep 3"
    process = shell.start(*WORDS, "sh", "-c", script, within=("setsid",))
    until((shell.home / "root/begun").exists)
    (working,) = children_of(process.pid)
    programs = programs_of(working)
    assert len(programs) >= 5
    assert all(map(is_loaded, programs))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    until(lambda: not any(map(is_loaded, programs)))
