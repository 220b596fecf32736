"""Captures: beside the roots, whatever becomes of the working directory, and with all there is."""

import json
import os
import subprocess
import sys

import pytest

from tests.behaviour.shell import Shell


def test_a_program_that_lists_the_root_sees_nothing_of_ours(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = shell.run("capture", "-o", "root/trace", "--root", "root", "--", "find", "root")
    assert done.out == "root\nroot/a\n"
    replayed = shell.run("replay", "root/trace", "--target", shell.target(), "--json")
    assert replayed.document()["replay"]["results"]["diverged"] == []


def test_a_trace_beside_the_root_is_not_taken_for_one_in_it(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    done = shell.run("capture", "-o", "root/../trace", "--root", "root", "--", "cat", "root/a")
    assert done.code == 0
    assert "lies in the root" not in done.err


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
