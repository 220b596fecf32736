"""Two targets at the same moment, by the real command: memory beside a disk; refusals."""

import json
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.behaviour.shell import Done, Shell, Until

THOUGHTFUL = """\
name: thoughtful
about: A file that is synced, by users who think.
users: {count: 1, think_time: 10ms}
duration: 12s
datasets:
  files: {files: 20, sizes: 4KiB}
  work: {directory: true, per: user}
mix: {save: 1}
transactions:
  save:
    - open: {from: files, pick: uniform}
    - read: {size: 4KiB}
    - close
    - open: {in: work, name: "note", flags: [create, wronly]}
    - write: {size: 4KiB}
    - fsync
    - close
"""


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def targets(shell: Shell, memory: Path) -> tuple[str, ...]:
    (shell.home / "thoughtful.yaml").write_text(THOUGHTFUL)
    return f"--target=memory={memory}", f"--target=disk={shell.target()}"


def begun(run: Path, phase: str) -> int:
    events = run / "events.jsonl"
    lines = events.read_text().splitlines() if events.exists() else []
    return sum(f'"phase":"{phase}"' in line for line in lines)


def report(shell: Shell, run: str) -> Done:
    return shell.run("report", run, "--format", "json")


def test_memory_and_a_disk_are_measured_at_the_same_moment(
    shell: Shell, targets: tuple[str, ...], memory: Path
) -> None:
    done = shell.run("run", "thoughtful.yaml", *targets, "--duet", "-t", "12s", "-o", "out")
    assert done.code in {0, 4}, done.err  # 4: others kept this machine busy
    document = report(shell, "out").document()
    assert document["load"]["duet"] is True
    assert (document["load"]["users"], document["load"]["rounds"]) == (1, 6)
    rounds = {}
    for target in document["summary"]["targets"]:
        assert target["overall"]["measured_s"] == pytest.approx(12, abs=1)
        rounds[target["name"]] = target["rounds"]
    for own, beside in zip(rounds["memory"], rounds["disk"], strict=True):
        assert own["measured_s"] == pytest.approx(beside["measured_s"], abs=0.2)
        assert own["transactions"][0]["count"] > 10
    assert {each["target"] for each in document["duet"]["figures"]} == {"memory", "disk"}
    rows = (shell.home / "out/timeline.csv").read_text().splitlines()[1:]
    measured = [row.split(",") for row in rows if ",measured," in row]
    one, other = ({cells[0] for cells in measured if cells[2] == target} for target in "01")
    assert len(one & other) > 0.7 * len(one | other)  # a short last one may have seen one of them
    assert begun(shell.home / "out", "alone") == 12
    if done.code == 0:
        assert "use memory" in document["answer"][0]
        assert "at the same time" in done.out
    else:
        assert document["ranking"] == []
    assert list(memory.iterdir()) == list((shell.home / "mount").iterdir()) == []


def test_a_report_and_a_comparison_of_a_duet_say_what_the_run_said(
    shell: Shell, targets: tuple[str, ...]
) -> None:
    done = shell.run(
        "run", "thoughtful.yaml", *targets, "--duet", "-t", "6s", "-o", "out", "--json"
    )
    document = done.document()
    again = report(shell, "out").document()
    assert again["duet"] == document["duet"]
    assert again["ranking"] == document["ranking"]
    compared = shell.run("compare", "out", "--format", "json").document()
    assert compared["compared"] == document["ranking"]


def test_two_folders_of_one_file_system_are_refused(shell: Shell, targets: tuple[str, ...]) -> None:
    other = f"--target=other={shell.target('other')}"
    done = shell.run("run", "thoughtful.yaml", targets[1], other, "--duet", "-o", "out")
    assert done.code == 2
    assert "--duet: disk and other are on the same file system (" in done.err
    assert "hint: leave --duet out: targets then take turns" in done.err
    assert not (shell.home / "out").exists()
    assert list((shell.home / "other").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--neighbour", "small-reads"), "--neighbour small-reads: a duet has no turns for it"),
        (("--set", "iterations=3"), "--duet needs a time: one target would be done before the"),
        (("--processes", "2"), "--duet needs one process"),
        (("--web",), "--duet is not for the web page"),
        (("--budget", "1m", "-t", "6s"), "--budget has no effect: -t fixes the length of the run"),
    ],
)
def test_what_two_targets_cannot_do_at_the_same_moment_is_refused(
    shell: Shell, targets: tuple[str, ...], words: tuple[str, ...], says: str
) -> None:
    done = shell.run("run", "thoughtful.yaml", *targets, "--duet", *words)
    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize("count", [1, 3])
def test_a_duet_has_two_targets(
    shell: Shell, targets: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    words = (*targets, f"--target=third={tmp_path}")[:count]
    done = shell.run("run", "thoughtful.yaml", *words, "--duet")
    assert done.code == 2
    assert f"--duet needs exactly 2 targets, got {count} target" in done.err


def test_ctrl_c_ends_both_and_keeps_what_was_measured(
    shell: Shell, targets: tuple[str, ...], memory: Path, until: Until
) -> None:
    process = shell.start("run", "thoughtful.yaml", *targets, "--duet", "-o", "out", "--json")
    until(lambda: begun(shell.home / "out", "measured") > 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    document = json.loads(out)
    assert (process.returncode, document["status"]) == (4, "interrupted"), err
    assert {target["name"] for target in document["summary"]["targets"]} == {"memory", "disk"}
    assert list(memory.iterdir()) == list((shell.home / "mount").iterdir()) == []


def test_ctrl_c_twice_ends_both_at_once(
    shell: Shell, targets: tuple[str, ...], memory: Path, until: Until
) -> None:
    process = shell.start("run", "thoughtful.yaml", *targets, "--duet", "-o", "out")
    until(lambda: begun(shell.home / "out", "alone") > 0)
    process.send_signal(signal.SIGINT)
    until(lambda: begun(shell.home / "out", "idle") > 0)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 4
    assert list(memory.iterdir()) == list((shell.home / "mount").iterdir()) == []
