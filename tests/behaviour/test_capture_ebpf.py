"""``replayer capture --recorder ebpf``: a real probe in the kernel, real programs, real replays."""

import os
import signal
import subprocess
import sys
import time

from tests.behaviour.probed import capture, load, needs_probe, until
from tests.behaviour.shell import Shell

pytestmark = needs_probe

TREE = (
    "mkdir -p root/a/b && echo one > root/a/one && echo two > root/a/b/two && ln -s one root/a/link"
)
SCRIPT = (
    "cd root; cat a/one a/b/two > both; cp -a a c; mv both moved; ls missing 2>/dev/null; rm -r c; "
    "python3 -c 'import os; os.stat(\"moved\")' & wait; exit 7"
)


def test_a_command_is_recorded_with_its_children_and_replays_as_recorded(shell: Shell) -> None:
    subprocess.run(["sh", "-c", TREE], cwd=shell.home, check=True)
    done = capture(shell, "--", "sh", "-c", SCRIPT)
    assert done.code == 7, done.err
    facts = load(shell, "trace/capture.json")
    assert facts["recorder"]["name"] == "ebpf"
    assert facts["exit_status"] == 7
    document = load(shell)
    assert document["blind_spots"] == {}
    assert document["counts"]["lines_not_understood"] == 0
    assert document["calibration"]["call_ns"] == 0
    assert "measured before the recording" in document["calibration"]["method"]
    assert {"rename", "symlink", "rmdir"} <= document["counts"]["ops"].keys()
    replayed = shell.run("replay", "trace", "--target", shell.target(), "--pace", "asap")
    assert replayed.code in (0, 4), replayed.err  # 4: the machine was too busy to judge times
    assert "100 % as recorded, 0 diverged" in replayed.out


def test_a_folder_of_the_programs_name_is_not_taken_for_the_program(shell: Shell) -> None:
    (shell.home / "replayer").mkdir()
    (shell.home / "replayer/__init__.py").write_text("raise SystemExit('another program')")
    (shell.home / "root").mkdir()
    assert capture(shell, "--", "touch", "root/one").code == 0
    calibration = load(shell)["calibration"]
    assert calibration["gap_ns"] > 0
    assert "measured before the recording" in calibration["method"]


def test_a_record_takes_at_most_110_bytes(shell: Shell) -> None:
    subprocess.run(["sh", "-c", TREE], cwd=shell.home, check=True)
    assert capture(shell, "--", "cp", "-a", "root/a", "root/copy").code == 0
    facts, counts = load(shell, "trace/capture.json"), load(shell)["counts"]
    assert facts["recorder"]["log_bytes"] / counts["calls"] < 110


def test_the_first_call_is_the_commands_own_execve(shell: Shell) -> None:
    done = capture(shell, "--keep-raw", "--", "true")
    assert (done.code, load(shell)["counts"]["calls_out_of_scope"]["execve"]) == (0, 1)
    assert (shell.home / "trace/raw/log.bpf.xz").exists()


def test_a_signal_reaches_the_command_and_the_recording_is_kept(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    script = "touch root/begun; exec sleep 60"
    words = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root", "--", "sh", "-c")
    process = shell.start(*words, script, within=("setsid",))
    until((shell.home / "root/begun").exists)
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert load(shell)["counts"]["ops"]["open"] == 1


def test_a_killed_recorder_leaves_the_command_unharmed_and_nothing_attached(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    script = "import time, os\nopen('root/begun', 'w')\ntime.sleep(1)\nopen('root/done', 'w')"
    words = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root", "--")
    process = shell.start(*words, sys.executable, "-c", script, within=("setsid",))
    until((shell.home / "root/begun").exists)
    process.kill()
    process.communicate(timeout=30)
    until((shell.home / "root/done").exists)
    (log,) = shell.home.glob(".trace.capture-*/log.bpf")
    left = subprocess.run(["fuser", log], capture_output=True, check=False).stdout
    assert left == b""


def test_without_the_capability_one_line_says_what_is_needed(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root", "--", "true")
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    process = shell.start(*words, within=drop)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "eBPF cannot be used: Operation not permitted" in err
    assert "hint: needed: the capabilities CAP_BPF and CAP_PERFMON" in err
    assert not list(shell.home.glob("*trace*"))


def test_two_capabilities_are_enough(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root", "--", "ls", "root")
    kept = "-all,+bpf,+perfmon"
    drop = ("setpriv", f"--bounding-set={kept}", f"--inh-caps={kept}")
    process = shell.start(*words, within=drop)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert load(shell)["counts"]["ops"]["getdents"] == 2


def test_a_limit_stops_the_recording_and_not_the_command(shell: Shell) -> None:
    script = "import os\nfor n in range(100_000): os.stat('root')\nprint('to the end')"
    done = capture(shell, "--limit", "2MB", "--", sys.executable, "-c", script)
    assert (done.code, done.out) == (0, "to the end\n")
    assert "the log has reached 2,000,000 bytes: later calls were not recorded" in done.err
    assert load(shell, "trace/capture.json")["recorder"]["log_bytes"] <= 2_000_100


SERVICE = """
import os, time
file = os.open("root/log", os.O_CREAT | os.O_RDWR)
os.write(file, b"0123456789" * 10)
os.lseek(file, 30, 0)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
os.read(file, 7)
os.stat("root/log")
open("done", "w").close()
os.read(os.pipe()[0], 1)
"""


def test_a_running_process_is_recorded_and_goes_on_unharmed(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    with subprocess.Popen([sys.executable, "-c", SERVICE], cwd=shell.home) as service:
        try:
            until((shell.home / "ready").exists)
            pid = str(service.pid)
            words = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "root", "-p", pid)
            process = shell.start(*words, within=("setsid",))
            until(lambda: [*shell.home.glob(".trace.capture-*/log.bpf")])
            time.sleep(1)
            (shell.home / "go").touch()
            until((shell.home / "done").exists)
            os.kill(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
            assert service.poll() is None
        finally:
            service.kill()
    counts = load(shell)["counts"]
    assert counts["ops"] == {"inherit": 1, "read": 1, "stat": 1}
    assert counts["calls_cut"] == {"cut by the end of the log": 1}  # the pipe's


def test_links_outside_of_the_roots_lead_to_the_files_below_them(shell: Shell) -> None:
    (shell.home / "root/deep").mkdir(parents=True)
    (shell.home / "root/deep/a").write_text("a")
    (shell.home / "www").symlink_to("root")
    (shell.home / "file").symlink_to(shell.home / "root/deep/a")
    script = f"cat www/deep/a {shell.home}/file; cd www; echo b >deep/b; cat deep/b"
    assert capture(shell, "--", "sh", "-c", script).code == 0
    counts = load(shell)["counts"]
    assert (counts["ops"]["open"], counts["ops"]["read"]) == (4, 6)
    assert counts["calls_with_unknown_file"] == {}
