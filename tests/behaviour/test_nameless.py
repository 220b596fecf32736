"""Files that have no name: linked to one while they are recorded, or open before that began."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.behaviour.shell import Shell, Until

LINKS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("root")
file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
os.write(file, b"content")
source = b"/proc/%s/fd/%d"
for owner, name in ((b"self", b"stage"), (b"%d" % os.getpid(), b"second")):
    assert libc.linkat(-100, source % (owner, file), -100, name, 0x400) == 0
assert libc.linkat(file, b"", -100, b"second", 0x1000) == -1
os.close(file)
os.rename("stage", "final")
assert open("final").read() == "content"
os.chmod("final", 0o600)
os.stat("final")
print(sorted(os.listdir()))
"""


SERVER = """
import os, time
os.chdir("root")
one = os.open("one", os.O_RDWR | os.O_CREAT, 0o600)
os.write(one, b"x" * 5000)
os.unlink("one")
other = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
print("ready", flush=True)
while True:
    for file in (one, other):
        os.lseek(file, 0, os.SEEK_SET)
        os.read(file, 8192)
        os.write(file, b"z" * 10)
    time.sleep(0.05)
"""


def replayed(shell: Shell, *words: str) -> Any:  # noqa: ANN401 - JSON
    done = shell.run("replay", "trace", "--target", shell.target(), "--json", *words)
    return done.document()["replay"]["results"]


def trace_of(home: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((home / "trace/trace.json").read_text())


def test_a_file_that_is_written_without_a_name_and_linked_is_replayed(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ("capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", LINKS)
    done = shell.run(*words)
    assert done.out == "['final', 'second']\n"
    results = replayed(shell, "-u", "2", "--loops", "2", "--pace", "asap")
    assert results["examples"] == []
    assert results["matched"] == results["compared"] == results["events"] > 0
    trace = trace_of(shell.home)
    assert trace["counts"]["ops"]["link"] >= 2
    assert trace["blind_spots"] == {}


def logged_bytes(home: Path) -> int:
    return sum(log.stat().st_size for log in home.glob(".trace.capture-*/log*"))


def test_what_a_process_does_with_files_that_had_been_removed_is_replayed(
    shell: Shell, until: Until
) -> None:
    (shell.home / "root").mkdir()
    words = [sys.executable, "-c", SERVER]
    with subprocess.Popen(words, cwd=shell.home, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        pid = str(server.pid)
        capturing = shell.start("capture", "-o", "trace", "--root", "root", "-p", pid)
        until(lambda: logged_bytes(shell.home) > 20_000)  # several turns of the server
        capturing.send_signal(signal.SIGINT)
        _, err = capturing.communicate(timeout=60)
        server.kill()
    assert capturing.returncode == 0, err
    counts = trace_of(shell.home)["counts"]
    assert counts["calls_not_representable"] == {}
    assert counts["ops"]["inherit"] == 2
    results = replayed(shell, "-u", "2", "--pace", "asap")
    assert results["examples"] == []
    assert results["omitted"] == []
    assert results["matched"] == results["compared"] > 0
