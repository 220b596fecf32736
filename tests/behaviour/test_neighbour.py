"""``replayer run --neighbour`` on a local folder: what it measures, refuses and leaves."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.shell import Shell, Until

IDLE = """\
name: idle
about: Hardly anything.
users: {count: 1}
duration: 1s
datasets:
  files: {files: 4, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
"""
SYNC = """\
name: sync
about: Small files that are made durable.
users: {count: 2}
duration: 1s
datasets:
  files: {files: 2, sizes: 4KiB}
mix: {sync: 1}
transactions:
  sync:
    - open: {from: files, pick: own, flags: [wronly]}
    - write: {size: 4KiB}
    - fsync
    - close
"""
STORM = """\
name: storm
about: Much that is made durable.
users: {count: 4}
duration: 1s
iterations: 1
datasets:
  work: {directory: true, per: user}
mix: {store: 1}
transactions:
  store:
    - open: {in: work, name: big, flags: [create, wronly, trunc]}
    - write: {size: 4MiB, block: 1MiB}
    - fsync
    - close
"""


@pytest.fixture
def words(shell: Shell) -> tuple[str, ...]:
    """A scenario on a target, with neighbours to choose from."""
    for name, text in (("idle", IDLE), ("sync", SYNC), ("storm", STORM)):
        (shell.home / f"{name}.yaml").write_text(text)
    return ("run", "look.yaml", "--target", f"here={shell.target()}", "-o", "out")


def document(shell: Shell) -> Any:  # noqa: ANN401 - JSON
    return json.loads((shell.home / "out/run.json").read_text())


def is_tidy(shell: Shell) -> bool:
    """Whether nothing is left on the target, and nobody works there."""
    return not any((shell.home / "mount").iterdir()) and not [*processes_in(shell)]


def processes_in(shell: Shell) -> Iterator[Path]:
    """Yield what processes have one of its files or folders open, or are there."""
    for process in Path("/proc").glob("[0-9]*"):
        if process.name != str(os.getpid()):
            with suppress(OSError):
                for link in (process / "cwd", *(process / "fd").iterdir()):
                    if str(link.readlink()).startswith(str(shell.home / "mount")):
                        yield process


def test_each_target_is_measured_alone_and_beside_the_neighbour(
    shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run(*words, "--neighbour", "idle.yaml@20/s", "-t", "3s", "--rounds", "2")
    assert done.code in {0, 4}, done.err
    run = document(shell)
    assert [target["name"] for target in run["targets"]] == ["here", "here+idle"]
    neighbour = run["neighbour"]
    assert neighbour["pairs"] == [{"alone": 0, "beside": 1}]
    (did,) = neighbour["done"]
    assert (did["target"], did["turns"], did["errors"]) == (1, 2, 0)
    assert did["rate_per_s"] == pytest.approx(20, rel=0.5)  # they are drawn
    for number, target in enumerate(run["summary"]["targets"]):
        assert target["index"] == number
        assert [part["number"] for part in target["rounds"]] == [0, 1]
        assert target["overall"]["transactions"][0]["count"] > 100
    assert "idle at 20/s on here+idle: " in done.out
    assert is_tidy(shell)


@pytest.mark.nightly
def test_the_neighbour_works_during_its_turns_and_at_no_other_time(
    shell: Shell, words: tuple[str, ...]
) -> None:
    shell.run(*words, "--neighbour", "sync.yaml", "-t", "4s", "--rounds", "2")
    turns = {(event["target"], event["round"]): event["at"] for event in phases(shell, "out")}
    beside = sorted((shell.home / "out/neighbour").glob("1-round-*/"))
    works = [next(iter(phases(shell, f"out/neighbour/{one.name}")))["at"] for one in beside]
    for number, (begin, end) in enumerate(works):
        assert begin < turns[1, number][0]
        assert turns[1, number][1] < end
        for other, (other_begin, other_end) in turns.items():
            assert other == (1, number) or other_end < begin or end < other_begin


def phases(shell: Shell, folder: str) -> Iterator[dict[str, Any]]:
    """Yield the measured phases of a run, with their begin and end by the wall clock."""
    path = shell.home / folder
    base = float(
        (path / "histograms.hlog").read_text().split("BaseTime: ")[1].split("]")[0].split()[0]
    )
    events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    told = [event for event in events if event["kind"] in {"phase", "ending"}]
    for event, following in pairwise(told):
        if event.get("phase") == "measured":
            yield {**event, "at": (base + event["t_s"], base + following["t_s"])}


@pytest.mark.parametrize(
    ("neighbour", "code", "told"),
    [
        ("none.yaml", 2, "none.yaml"),
        ("idle.yaml@20", 2, "has no unit"),
        ("@20/s", 2, "must be SCENARIO or SCENARIO@RATE"),
        ("visibility", 2, "its users have roles"),
    ],
)
def test_a_neighbour_that_cannot_run_is_refused_before_anything_is_made(
    shell: Shell, words: tuple[str, ...], neighbour: str, code: int, told: str
) -> None:
    done = shell.run(*words, "--neighbour", neighbour)
    assert (done.code, told in done.err) == (code, True), done.err
    assert len(done.err.splitlines()) <= 2
    assert not (shell.home / "out").exists()
    assert is_tidy(shell)


def test_a_neighbour_that_always_fails_is_none(shell: Shell, words: tuple[str, ...]) -> None:
    wrong = IDLE.replace("stat: {from: files, pick: uniform}", "stat: {in: work, name: none}")
    wrong = wrong.replace("mix:", "  work: {directory: true}\nmix:")
    (shell.home / "wrong.yaml").write_text(wrong)
    done = shell.run(*words, "--neighbour", "wrong.yaml@20/s", "-t", "3s", "--rounds", "1")
    assert done.code == 4
    told = " ".join(done.out.split())
    assert "the neighbour of here+wrong was not wrong at 20/s: no transaction of it" in told
    assert "times as long" not in done.out
    assert is_tidy(shell)


@pytest.mark.nightly
def test_a_neighbour_that_falls_behind_its_rate_is_none(
    shell: Shell, words: tuple[str, ...]
) -> None:
    fast = ("--neighbour", "storm.yaml@10000/s")  # 40 GB a second
    done = shell.run(*words, *fast, "-t", "3s", "--rounds", "1")
    assert done.code == 4
    assert "never started: its users were busy" in " ".join(done.out.split())
    assert is_tidy(shell)


def test_a_neighbour_that_dies_ends_the_run(
    shell: Shell, words: tuple[str, ...], until: Until
) -> None:
    process = shell.start(*words, "--neighbour", "idle.yaml", "-t", "60s", "--rounds", "2")
    until(lambda: any((shell.home / "out/neighbour").glob("1-round-1/histograms.hlog")))
    os.kill(process_of(shell.home / "out/neighbour/1-round-1"), signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "the neighbour of here+idle did not run on" in err
    assert "times as long" not in out
    assert is_tidy(shell)


def process_of(folder: Path) -> int:
    return int(json.loads((folder / "run.json").read_text())["process"]["pid"])


@pytest.mark.parametrize("presses", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_ctrl_c_ends_both_and_leaves_nothing(
    shell: Shell, words: tuple[str, ...], until: Until, presses: int
) -> None:
    process = shell.start(*words, "--neighbour", "storm.yaml", "-t", "60s", "--rounds", "2")
    until(lambda: any((shell.home / "out/neighbour").glob("1-round-1/histograms.hlog")))
    number = process_of(shell.home / "out/neighbour/1-round-1")
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        until(lambda: True)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "interrupted" in err
    assert not Path(f"/proc/{number}").exists()
    assert is_tidy(shell), out


@pytest.mark.nightly
def test_several_targets_and_processes_have_a_neighbour_on_each_target(
    shell: Shell, words: tuple[str, ...]
) -> None:
    more = ("--target", f"there={shell.target('other')}", "--neighbour", "idle.yaml@20/s")
    done = shell.run(*words, *more, "-t", "3s", "--rounds", "1", "--processes", "2")
    assert done.code in {0, 4}, done.err
    run = document(shell)
    assert [each["target"] for each in run["neighbour"]["done"]] == [1, 3]
    for target in run["summary"]["targets"]:
        assert target["overall"]["transactions"][0]["count"] > 100
    assert {client["machine"]["host"] for client in run["clients"]}
    assert is_tidy(shell)
    assert not any((shell.home / "other").iterdir())


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--target", "here=mount", "--duet"), "a duet has no turns for it"),
        (("--reuse", "here=mount"), "has room for one of its two settings"),
        (("--target", "here=mount", "--master"), "needs the targets on this machine"),
        (("--target", "here=mount", "--web"), "is not for the web page"),
    ],
)
def test_where_a_neighbour_has_no_place_it_is_refused(
    shell: Shell, words: tuple[str, ...], more: tuple[str, ...], told: str
) -> None:
    done = shell.run(*words[:2], *more, "--neighbour", "idle.yaml")
    assert (done.code, told in done.err) == (2, True), done.err
