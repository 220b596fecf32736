"""What of a replay's time the recorder may have made, said where nobody measured it."""

import json
from pathlib import Path

from tests.behaviour.shell import Shell

PROGRAM = """
import time
for _ in range(20):
    open("root/file").close()
    time.sleep(0.005)
"""
"""Its pauses are as long as those of a recorder that waits for a CPU."""
SAYS = "time are pauses that the recorder may have made"


def captured(shell: Shell, *words: str) -> Path:
    root, program = shell.home / "root", shell.home / "program.py"
    root.mkdir()
    (root / "file").write_text("content")
    program.write_text(PROGRAM)
    own = ("capture", "--recorder", "strace", "-o", "trace", "--root", "root")
    done = shell.run(*own, *words, "--", "python3", "-S", program)
    assert done.code == 0, done.err
    return shell.home / "trace"


def test_show_and_the_report_say_it_of_a_trace_that_was_not_rehearsed(shell: Shell) -> None:
    captured(shell)
    shown = shell.run("show", "trace").out
    assert SAYS in shown[: shown.index("events  ")]
    assert "--rehearse" in shown[: shown.index("events  ")]
    done = shell.run("replay", "trace", "--target", shell.target(), "-o", "run")
    assert done.went_well, done.err
    top = " ".join(done.out.split())
    assert SAYS in top
    assert "replayer fit" in top
    (site,) = json.loads((shell.home / "run/run.json").read_text())["replay"]["transactions"]
    assert 0 < site["recorder_ns"] <= site["pauses_ns"]


def test_a_rehearsed_trace_does_not_say_it(shell: Shell) -> None:
    captured(shell, "--rehearse", "2")
    assert SAYS not in shell.run("show", "trace").out
    done = shell.run("replay", "trace", "--target", shell.target())
    assert done.went_well, done.err
    assert SAYS not in " ".join(done.out.split())


def test_a_replay_without_pauses_does_not_say_it(shell: Shell) -> None:
    done = shell.run("replay", "wordpress/login", "--target", shell.target(), "--pace", "asap")
    assert done.went_well, done.err
    assert SAYS not in " ".join(done.out.split())


IOLOG = """fio version 3 iolog
0 /srv/file add
0 /srv/file open
10 /srv/file write 0 4096
25 /srv/file write 4096 4096
40 /srv/file close
"""


def test_a_log_whose_recorder_stops_nobody_does_not_say_it(shell: Shell) -> None:
    (shell.home / "log").write_text(IOLOG)
    made = shell.run("import", "log", "-o", "trace", "--root", "/srv", "--format", "fio-iolog")
    assert made.code == 0, made.err
    assert SAYS not in made.out + shell.run("show", "trace").out
    done = shell.run("replay", "trace", "--target", shell.target())
    assert done.went_well, done.err
    assert SAYS not in " ".join(done.out.split())
