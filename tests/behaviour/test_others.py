"""What others do to files while a command that reads them is recorded, and its replay."""

import subprocess

from tests.behaviour.shell import Shell


def test_a_log_that_others_append_to_while_it_is_followed_is_replayed(shell: Shell) -> None:
    log = shell.home / "root" / "log"
    log.parent.mkdir()
    log.write_text("first\n")
    with subprocess.Popen(["sleep", "200"]) as awaited:
        follow = ("tail", "-n", "+1", "-s", "0.05", f"--pid={awaited.pid}", "-f", "root/log")
        recording = shell.start("capture", "-o", "trace", "--root", "root", "--", *follow)
        assert recording.stdout is not None
        assert recording.stdout.readline() == "first\n"
        for line in ("second\n", "third, which is longer\n"):
            with log.open("a") as appended:
                appended.write(line)
            assert recording.stdout.readline() == line
        awaited.kill()
        awaited.wait()  # tail takes one that nobody has waited for as living
        recording.communicate(timeout=60)
    assert recording.returncode == 0
    shown = shell.run("show", "trace", "--json").document()
    assert shown["counts"]["ops"]["meanwhile"] == 2

    done = shell.run("replay", "trace", "--target", shell.target(), "-u", "3", "--json")
    results = done.document()["replay"]["results"]
    assert results["diverged"] == []
    assert results["matched"] == results["compared"] > 15
