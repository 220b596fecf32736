"""Ctrl-C, SIGTERM, SIGHUP and kill -9: results kept, folders removed, nothing else touched."""

import csv
import json
import os
import pty
import re
import signal
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.behaviour.shell import BUSY, Shell, Until
from tests.processes import spinners

IS_FAR = re.compile(rb"laying out mount: (?:[5-9]|1\d),\d{3} of")
"""Far enough that it is seen how what is there is removed again."""


def runs(home: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in (home / "replayer-runs").glob("*/run.json")]


def is_measuring(home: Path) -> bool:
    return any(
        '"measured"' in path.read_text() for path in home.glob("replayer-runs/*/events.jsonl")
    )


def sleepers(mount: Path) -> tuple[str, ...]:
    """A run whose transactions take 30 s each."""
    step = "transactions.look=[{stat: {from: files, pick: uniform}}, {think: 30s}]"
    return ("run", "look.yaml", "--target", str(mount), "-t", "60s", "--set", step)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_lets_transactions_finish_and_keeps_the_results(
    shell: Shell, until: Until, number: int
) -> None:
    mount = shell.target()
    # A limit on errors, as one on times is inconclusive anyway on a busy machine.
    limits = ("--threshold", "errors >= 1", "--junit", "verdict.xml")
    process = shell.start("run", "tiny.yaml", "--target", mount, "-t", "60s", "--json", *limits)
    until(lambda: is_measuring(shell.home))
    time.sleep(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    assert "interrupted" in err
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert document["verdict"]["exit_code"] == 4
    assert "missed" in document["verdict"]["judgements"][0]["says"]
    assert [run["verdict"] for run in runs(shell.home)] == ["inconclusive"]
    assert 'failures="0"' in (shell.home / "verdict.xml").read_text()
    transactions = document["summary"]["targets"][0]["overall"]["transactions"]
    assert sum(each["count"] for each in transactions) > 0
    assert sum(each["cancelled"] for each in transactions) == 0
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_probe_that_is_interrupted_leaves_nothing_and_keeps_what_was_found(
    shell: Shell, until: Until, number: int
) -> None:
    first, second = shell.target(), shell.target("other")
    process = shell.start("doctor", "--json", first, second)
    until(lambda: any(second.iterdir()))
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    found = json.loads(out)
    assert [each["mount"]["path"] for each in found] == [str(first), str(second)]
    assert [each["probe"] is None for each in found] == [False, True]
    assert [*first.iterdir(), *second.iterdir()] == []


def test_a_run_that_was_begun_to_outlive_its_terminal_does(shell: Shell, until: Until) -> None:
    words = ("run", "tiny.yaml", "--target", shell.target(), "-t", "2s", "--json")
    process = shell.start(*words, within=("nohup",))
    until(lambda: is_measuring(shell.home))
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=20)
    assert json.loads(out)["status"] == "finished", err


def run_in_terminal(
    shell: Shell, mount: Path, lasts: str, *more: str, asks: bool = False
) -> tuple[int, int]:
    """Start a run with a terminal of its own; return its process and the terminal's other end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.home)
        words = ["-m", "replayer", "run", "tiny.yaml", "--target", str(mount), "-t", lasts]
        words += [] if asks else ["--yes"]  # other tests keep the machine busy
        os.execv(sys.executable, [sys.executable, *words, *more])  # noqa: S606 - its session
    return pid, terminal


def test_a_terminal_that_goes_away_ends_its_run_with_the_results(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    pid, terminal = run_in_terminal(shell, mount, "60s", "--quiet")
    until(lambda: is_measuring(shell.home))
    os.close(terminal)
    os.waitpid(pid, 0)
    (run,) = runs(shell.home)
    assert run["status"] == "interrupted"
    assert list(mount.iterdir()) == []


def test_keys_in_a_terminal_change_nothing_and_the_terminal_stays_as_it_is(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    pid, terminal = run_in_terminal(shell, mount, "3s", "--quiet")
    until(lambda: is_measuring(shell.home))
    modes = termios.tcgetattr(terminal)[3]
    os.write(terminal, b"SwS")
    with suppress(OSError):  # of Linux, once nobody else has it open
        while os.read(terminal, 65536):
            pass
    os.waitpid(pid, 0)
    (run,) = runs(shell.home)
    assert run["status"] == "finished"
    assert modes & termios.ICANON, "to change that stops a process in the background"
    (timeline,) = shell.home.glob("replayer-runs/*/timeline.csv")
    with timeline.open() as file:
        users = [row["users"] for row in csv.DictReader(file) if row["phase"] == "measured"]
    assert set(users) == {"2"}


def test_a_terminal_has_its_cursor_again_after_a_run_that_could_not_begin(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    many = ("--set", "files.files=20000")
    pid, terminal = run_in_terminal(shell, shell.target(), "60s", *many)
    shown = b""
    with suppress(OSError):  # of Linux, once nobody else has it open
        while more := os.read(terminal, 65536):
            was_far, shown = IS_FAR.search(shown), shown + more
            if not was_far and IS_FAR.search(shown):
                os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 4, shown
    assert b"interrupted while laying out" in shown
    assert 0 <= shown.rfind(b"\x1b[?25l") < shown.rfind(b"\x1b[?25h"), "hidden, and shown again"


def test_the_end_of_a_terminal_reaches_workers_and_costs_no_result(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    words = ("run", "tiny.yaml", "--target", mount, "-t", "60s", "--json", "--processes", "2")
    process = shell.start(*words, within=("setsid",))
    until(lambda: is_measuring(shell.home))
    os.killpg(process.pid, signal.SIGHUP)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert [client["status"] for client in document["clients"]] == ["finished"] * 2
    assert list(mount.iterdir()) == []


def test_a_second_ctrl_c_ends_at_once_and_still_keeps_results_and_cleans(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    process = shell.start(*sleepers(mount), "--stop-timeout", "60")
    until(lambda: is_measuring(shell.home))
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - begin < 15  # of the 60 s that users have after the first
    assert process.returncode == 4, err
    assert [run["status"] for run in runs(shell.home)] == ["interrupted"]
    assert list(mount.iterdir()) == []


def test_one_signal_to_the_whole_group_is_one_wish(shell: Shell, until: Until) -> None:
    # As of `timeout -s INT` and supervisors: its processes have it, and pass it on to each other.
    mount = shell.target()
    step = "transactions.look=[{stat: {from: files, pick: uniform}}, {think: 2s}]"
    words = ("run", "look.yaml", "--target", mount, "-t", "60s", "--set", step, "--json")
    process = shell.start(*words, within=("setsid",))
    until(lambda: is_measuring(shell.home))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    (look,) = json.loads(out)["summary"]["targets"][0]["overall"]["transactions"]
    assert (look["cancelled"], look["count"] > 0) == (0, True), "they were to be finished"
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize("wait_s", [0.05, 0.2, 0.5, 0.75, 1.0])
def test_a_signal_while_the_program_starts_ends_it_in_a_word(
    shell: Shell, until: Until, wait_s: float
) -> None:
    process = shell.start("run", "tiny.yaml", "--target", shell.target(), within=("setsid",))
    status = Path(f"/proc/{process.pid}/status")

    def is_blocked() -> bool:
        (mask,) = (line for line in status.read_text().splitlines() if line.startswith("SigBlk"))
        return bool(int(mask.split()[1], 16) >> signal.SIGINT - 1 & 1)

    until(is_blocked)  # from the program's first line on; before that Python itself begins
    time.sleep(wait_s)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    # On a fast machine it measures by then, and removes its folder after the word.
    (word,) = (line for line in err.splitlines() if line.startswith("replayer: "))
    assert word.startswith("replayer: interrupted"), err
    assert "Traceback" not in err


def test_transactions_that_do_not_finish_within_the_stop_timeout_are_cancelled(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    process = shell.start(*sleepers(mount), "--stop-timeout", "1", "--json")
    until(lambda: is_measuring(shell.home))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 4, err
    (look,) = json.loads(out)["summary"]["targets"][0]["overall"]["transactions"]
    assert look["cancelled"] == 2
    assert look["latency"]["max_ns"] == look["latency"]["unfinished_ns"]
    assert look["latency"]["unfinished_ns"] > 10**9, "the stop timeout alone is as long"


@pytest.mark.parametrize("processes", [(), ("--processes", "2")])
def test_transactions_that_have_not_ended_are_at_least_that_long_in_the_report(
    shell: Shell, processes: tuple[str, ...]
) -> None:
    words = ("-t", "2s", "--stop-timeout", "1", "-u", "2", "--threshold", "look.max < 1s")
    done = shell.run(*sleepers(shell.target()), *words, *processes, "-o", "run")
    assert done.code in {1, 4}, done.err  # on a busy machine a time may be the client's
    bound = "\N{GREATER-THAN OR EQUAL TO} "
    assert f"look.max < 1s: {bound}" in done.out
    assert "2 transactions on mount had not ended when their turn did: the oldest, look" in done.out
    form = shell.run("report", "run", "--json").document()
    (look,) = form["summary"]["targets"][0]["overall"]["transactions"]
    assert (look["count"], look["cancelled"]) == (0, 2)
    assert 2.9e9 < look["latency"]["unfinished_ns"] < 20e9
    (found,) = form["analysis"]["unfinished"]
    assert found["oldest_ns"] == look["latency"]["max_ns"]


def test_a_run_killed_with_9_is_removed_by_clean_and_nothing_else_is(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    (mount / "mine.txt").write_text("keep me")
    (mount / "replayer-mine").mkdir()
    process = shell.start("run", "tiny.yaml", "--target", mount, "-t", "60s")
    until(lambda: is_measuring(shell.home))
    (folder,) = (path for path in mount.glob("replayer-2*"))

    alive = shell.run("clean", mount)
    assert alive.code == 2
    assert "its run is still running" in alive.err

    process.kill()
    process.communicate()
    dry = shell.run("clean", "--dry-run", mount)
    assert (dry.code, dry.out) == (0, f"would remove {folder}\n")
    assert folder.exists()
    done = shell.run("clean", mount)
    assert done.went_well, done.err
    assert done.out.startswith(f"removed {folder}: ")
    assert sorted(path.name for path in mount.iterdir()) == ["mine.txt", "replayer-mine"]

    (report,) = (shell.home / "replayer-runs").iterdir()
    shown = shell.run("report", report)
    assert "look" in shown.out, shown.err


@pytest.mark.parametrize("where", [".", "replayer-data"])
def test_a_run_without_a_target_that_is_killed_is_removed_by_clean(
    shell: Shell, until: Until, where: str
) -> None:
    process = shell.start("run", "look.yaml", "-t", "60s")
    until(lambda: is_measuring(shell.home))
    process.kill()
    process.communicate()
    (folder,) = (shell.home / "replayer-data").iterdir()
    done = shell.run("clean", where)
    assert done.code == 0, done.err
    assert done.out.startswith(f"removed {folder.relative_to(shell.home)}: ")
    assert list((shell.home / "replayer-data").iterdir()) == []


def test_a_signal_while_laying_out_removes_what_was_laid_out(shell: Shell, until: Until) -> None:
    mount = shell.target()
    many = ("--set", "files.files=60000", "--set", "files.sizes=16KiB")
    process = shell.start("run", "look.yaml", "--target", mount, *many)
    until(lambda: any(mount.glob("replayer-*/files/*")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    assert "interrupted while laying out" in err
    assert list(mount.iterdir()) == []
    assert [run["status"] for run in runs(shell.home)] == ["interrupted"]


def test_a_run_that_was_stopped_and_went_on_proves_nothing_and_says_when_it_stood_still(
    shell: Shell, until: Until
) -> None:
    process = shell.start("run", "tiny.yaml", "--target", shell.target(), "-t", "4s")
    until(lambda: is_measuring(shell.home))
    (run,) = runs(shell.home)
    assert isinstance(run["process"], dict)
    os.kill(run["process"]["pid"], signal.SIGSTOP)
    time.sleep(2)
    os.kill(run["process"]["pid"], signal.SIGCONT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    assert "the client stood still" in out
    (log,) = shell.home.glob("replayer-runs/*/events.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (found,) = (event for event in events if event["kind"] == "standstill")
    assert found["length_s"] > 1.5


def test_clean_refuses_a_folder_without_the_marker(shell: Shell) -> None:
    mount = shell.target()
    (mount / "replayer-20261121T000000-abcd").mkdir()
    (mount / "replayer-20261121T000000-abcd" / "thesis.txt").write_text("mine")
    done = shell.run("clean", "--force", mount / "replayer-20261121T000000-abcd")
    assert done.code == 2
    assert "was not made by a run" in done.err
    assert (mount / "replayer-20261121T000000-abcd" / "thesis.txt").exists()


@pytest.mark.parametrize("name", ["20261121T000000-abcd", "doctor-0123abcd", "direct-0123abcd"])
def test_clean_removes_an_empty_folder_that_bears_the_name_of_a_run(
    shell: Shell, name: str
) -> None:
    mount = shell.target()
    begun, other = mount / f"replayer-{name}", mount / "replayer-mine"
    for folder in (begun, other):
        folder.mkdir()
    (mount / "replayer-20261121T000000-0123").symlink_to(other)
    young = shell.run("clean", mount)
    assert young.code == 2
    assert "a run may be creating it" in young.err
    done = shell.run("clean", "--force", mount)
    assert (done.code, done.out.startswith(f"removed {begun}: an empty folder")) == (0, True), (
        done.err
    )
    assert sorted(path.name for path in mount.iterdir()) == [
        "replayer-20261121T000000-0123",
        "replayer-mine",
    ]


def test_clean_says_when_there_is_nothing_to_remove(shell: Shell) -> None:
    done = shell.run("clean", shell.target())
    assert (done.code, done.err) == (0, "nothing to remove\n")


@pytest.mark.parametrize(
    "answer",
    [b"n\n", *(pytest.param(each, marks=pytest.mark.nightly) for each in (b"\n", b"\x03"))],
)
def test_on_a_busy_machine_a_person_is_asked_and_may_say_no(shell: Shell, answer: bytes) -> None:
    mount, shown = shell.target(), b""
    with spinners(3 * len(os.sched_getaffinity(0))):
        pid, terminal = run_in_terminal(shell, mount, "60s", asks=True)
        with suppress(OSError):  # of Linux, once nobody else has it open
            while more := os.read(terminal, 65536):
                was_asked, shown = b"[y/N]" in shown, shown + more
                if not was_asked and b"[y/N]" in shown:
                    os.write(terminal, answer)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 4, shown
    assert b"other programs use" in shown
    assert list(mount.iterdir()) == []
    assert not (shell.home / "replayer-runs").exists()


def test_in_a_pipe_a_busy_machine_is_told_and_measured_on(shell: Shell) -> None:
    with spinners(3 * len(os.sched_getaffinity(0))):
        process = shell.start("run", "tiny.yaml", "--target", shell.target(), "-t", "1s")
        out, err = process.communicate(timeout=60)
    assert BUSY.search(err), err
    assert process.returncode in {0, 4}, err
    assert "tiny" in out
