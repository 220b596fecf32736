"""The folders of runs that are ended: while a turn is laid out, and where they are to be kept."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, Until

NOT_ANEW = "kept, but not laid out again (interrupted), and --reuse would reject it"
TWO = ("--processes", "2")
MANY = 100_000
"""Files that no machine lays out anew in the third of a second between two signals."""


def turns_begun(home: Path) -> int:
    """Count the turns of targets whose measured phase has begun."""
    logs = [path.read_text() for path in home.glob("replayer-runs/*/events.jsonl")]
    events = [json.loads(line) for log in logs for line in log.splitlines() if line.endswith("}")]
    return sum(each["kind"] == "phase" and each["phase"] == "measured" for each in events)


def count_files(mount: Path) -> int:
    """Count what is there of the dataset of a run, which may be removed meanwhile."""
    found = (names for path in mount.glob("replayer-*/files") for _, _, names in os.walk(path))
    return sum(map(len, found))


@pytest.mark.parametrize("several", [(), pytest.param(TWO, marks=pytest.mark.nightly)])
def test_a_signal_while_a_later_turn_is_laid_out_interrupts_the_run_and_fails_nothing(
    shell: Shell, until: Until, several: tuple[str, ...]
) -> None:
    first, second = shell.target(), shell.target("near")
    limits = ("--threshold", "errors >= 1", "--json")
    many = ("--set", "files.files=20000", "--rounds", "2", "-t", "3s", *limits, *several)
    process = shell.start("run", "tiny.yaml", "--target", first, "--target", second, *many)

    def is_wiped() -> bool:
        turns = turns_begun(shell.home)
        return turns > 2 or (turns == 2 and count_files(first) < 20_000)

    until(is_wiped)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    document = json.loads(out)
    verdict = document["verdict"]
    assert (process.returncode, document["status"]) == (4, "interrupted"), err
    assert (verdict["outcome"], verdict["exit_code"]) == ("inconclusive", 4)
    assert "missed when the run was interrupted" in verdict["judgements"][0]["says"]
    assert [*first.iterdir(), *second.iterdir()] == []


def test_a_kept_folder_of_a_run_that_was_interrupted_is_as_laid_out(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    process = shell.start("run", "tiny.yaml", "--target", mount, "-t", "60s", "--keep")
    until(lambda: turns_begun(shell.home))
    until(lambda: any(mount.glob("replayer-*/work/**/note_*")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    (folder,) = mount.iterdir()
    assert f"kept; use it again with --reuse mount={folder}" in err
    again = shell.run("run", "tiny.yaml", "--reuse", folder)
    assert again.went_well, again.err


@pytest.mark.parametrize("several", [(), TWO])
def test_a_kept_folder_that_was_not_laid_out_anew_is_said_to_be_so(
    shell: Shell, until: Until, several: tuple[str, ...]
) -> None:
    mount = shell.target()
    step = "transactions.look=[{stat: {from: files, pick: uniform}}, {think: 30s}]"
    words = ("run", "tiny.yaml", "--target", mount, "-t", "60s", "--keep", "--set", step)
    process = shell.start(*words, "--stop-timeout", "60", *several)
    until(lambda: turns_begun(shell.home))
    time.sleep(0.5)
    files = count_files(mount)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    (folder,) = mount.iterdir()
    assert f"{NOT_ANEW}: mount={folder}" in err
    assert "removing the folders" not in err
    assert count_files(mount) == files, "nothing was begun"
    removed = shell.run("clean", mount)
    assert removed.code == 0, removed.err


@pytest.mark.nightly
@pytest.mark.parametrize("several", [(), TWO])
def test_one_more_signal_ends_laying_out_anew_for_all_targets(
    shell: Shell, until: Until, several: tuple[str, ...]
) -> None:
    first, second = shell.target(), shell.target("near")
    targets = ("--target", first, "--target", second, "--rounds", "1")
    many = ("--set", f"files.files={MANY}", "-t", "60s", "--keep", *several)
    process = shell.start("run", "tiny.yaml", *targets, *many)
    until(lambda: turns_begun(shell.home))
    (folder,) = first.glob("replayer-*/files")
    laid_out_ns = folder.stat().st_mtime_ns
    process.send_signal(signal.SIGINT)
    until(lambda: not folder.exists() or folder.stat().st_mtime_ns != laid_out_ns)
    too_soon = time.monotonic() + 0.3  # what comes sooner is taken for the same wish
    time.sleep(max(too_soon - time.monotonic(), 0))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert err.count(NOT_ANEW) == 2, err
    assert "removing the folders" not in err
    assert count_files(first) < MANY
    assert count_files(second) >= MANY, "what was left to be done is not begun"


@pytest.mark.nightly
def test_a_removal_that_is_abandoned_is_told_once_and_by_workers_not_tried_again(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    many = ("--set", "files.files=60000", "-t", "60s", "--processes", "2")
    process = shell.start("run", "look.yaml", "--target", mount, *many)
    until(lambda: turns_begun(shell.home))
    (folder,) = mount.glob("replayer-*/files")
    (own,) = shell.home.glob("replayer-runs/parts/*-0/run.json")
    remover = json.loads(own.read_text())["process"]["pid"]
    full = folder.stat().st_mtime_ns
    process.send_signal(signal.SIGINT)
    while folder.stat().st_mtime_ns == full:
        time.sleep(0.001)
    os.kill(remover, signal.SIGSTOP)  # it would be done before anybody can press a key twice
    for _ in range(2):
        time.sleep(0.4)  # what comes sooner is taken for the same wish
        process.send_signal(signal.SIGINT)
    time.sleep(0.4)
    os.kill(remover, signal.SIGCONT)
    begin_s = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - begin_s < 9, "each try would take a second"
    assert "removing the folders of the run; another Ctrl-C leaves them behind" in err
    assert err.count("left behind") == 1, err
    assert process.returncode == 3, err
    assert shell.run("clean", mount).code == 0
