"""Logs that strace -ff really wrote: they become what a log of -f becomes, and replay."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell

COMMANDS = "cd root/d; cat f; cat f > g; (cd ..; mv d/g h; true); ls; true"
PROGRAM = """
import os, subprocess, threading
os.chdir("root/d")
os.mkdir("a")
for number in range(12):
    open(f"a/{number}", "w").close()
def rename(first):
    for number in range(first, 12, 3):
        os.rename(f"a/{number}", f"a/m{number}")
threads = [threading.Thread(target=rename, args=(first,)) for first in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
subprocess.run(["sh", "-c", "cd a; cat m* > all; mv all ../all; rm m1"], check=True)
os.unlink("all")
"""
FLAVOURS = ["-ttt -T", "-t -T", "-r", ""]


def record(shell: Shell, words: str, command: list[str]) -> list[Path]:
    """Run a command in new files; return its logs."""
    logs = shell.home / f"logs{words.replace(' ', '')}"
    logs.mkdir()
    root = shell.home / "root"
    subprocess.run(["rm", "-rf", root], check=True)
    (root / "d").mkdir(parents=True)
    (root / "d/f").write_text("x")
    strace = ["strace", *words.split(), "-o", str(logs / "log"), *command]
    subprocess.run(strace, check=True, cwd=shell.home, stdout=subprocess.DEVNULL)
    return sorted(logs.iterdir())


def ops_and_edges(shell: Shell, words: str, command: list[str]) -> tuple[Counter[str], int]:
    logs = record(shell, words, command)
    name = words.replace(" ", "")
    trace = shell.home / f"trace{name}"
    known = ("--root", shell.home / "root", "--cwd", shell.home)
    document = shell.run("import", *logs, "-o", trace, *known, "--json").document()
    done = shell.run("replay", trace, "--target", shell.target(name), "--json")
    assert done.document()["replay"]["results"]["diverged"] == [], words
    counts = document["counts"]
    assert counts["calls_with_unknown_directory"] == {}, words
    return Counter(counts["ops"]), counts["edges_by_reason"].get("wait", 0)


@pytest.mark.parametrize("command", [["sh", "-c", COMMANDS], ["python3", "-c", PROGRAM]])
def test_logs_of_each_task_become_what_one_log_of_all_becomes(
    shell: Shell, command: list[str]
) -> None:
    ops, waits = ops_and_edges(shell, "-f -ttt -T", command)
    assert waits
    for flavour in FLAVOURS:
        assert ops_and_edges(shell, f"-ff {flavour}", command) == (ops, waits), flavour
