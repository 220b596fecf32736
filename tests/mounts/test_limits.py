"""Limits of the machine that a run meets: descriptors, threads, a wall clock, kill -9."""

import json
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mounts.fleet import long
from tests.mounts.kills import WORKS, kill_once, make_range
from tests.mounts.machine import CannotError, needs
from tests.mounts.scene import Scene, make_scene

pytestmark = pytest.mark.mounts

PIDS = Path("/sys/fs/cgroup/pids")
QUICK = {"run", "look for O_DIRECT"}
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


@pytest.fixture
def scene(tmp_path: Path, home: Path) -> Iterator[Scene]:
    (tmp_path / "mount").mkdir()
    scene = make_scene(home / "shell", tmp_path / "mount")
    yield scene
    scene.kill()


HOLD = "transactions.look=[{open: {from: files, pick: uniform}}, {think: 300ms}, close]"


@long
def test_descriptors_that_run_out_are_counted_and_the_run_ends(scene: Scene) -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    scene.begin("look.yaml", "-u", "100", "-t", "2s", "--set", HOLD, limit=few_descriptors)
    scene.happens()
    ending = scene.end()
    assert ending.outcomes == {"EMFILE"}, ending.said
    assert ending.code in {1, 4}
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell("RLIMIT_NOFILE 64, 100 users", "local disk", ending)


@pytest.fixture
def few_threads() -> Iterator[Path]:
    group = PIDS / f"replayer-tests-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup of our own: {error}")
    (group / "pids.max").write_text("40")
    yield group
    deadline = time.monotonic() + 10
    while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    group.rmdir()


def test_threads_that_run_out_end_the_run_with_the_reason(scene: Scene, few_threads: Path) -> None:
    def join() -> None:
        (few_threads / "cgroup.procs").write_text(str(os.getpid()))

    scene.begin("look.yaml", "-u", "200", "-t", "30s", limit=join)
    scene.happens()
    ending = scene.end()
    assert ending.took_s < 30
    assert ending.code == 3, ending.said
    assert "got no thread" in ending.said
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell("pids.max 40, 200 users", "local disk", ending)


@long
@pytest.mark.parametrize("step", ["+1d", "-1d"])
def test_a_wall_clock_that_is_set_changes_neither_times_nor_the_length_of_a_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    try:
        needs("faketime", "faketime")
    except CannotError as error:
        pytest.skip(str(error))
    if not FAKETIME.exists():
        pytest.skip("libfaketime is elsewhere on this machine")
    clock = scene.shell.home / "clock"
    clock.write_text("+0")
    monkeypatch.setenv("LD_PRELOAD", str(FAKETIME))
    monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(clock))
    monkeypatch.setenv("FAKETIME_NO_CACHE", "1")
    monkeypatch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    scene.begin("look.yaml", "-t", "3s")
    monkeypatch.undo()
    scene.wait_until_measuring()
    begun = time.monotonic()
    clock.write_text(step)
    scene.happens()
    ending = scene.end()
    assert time.monotonic() - begun < 3 + 30  # far below a day
    assert ending.code in {0, 4}, ending.said
    (folder,) = (scene.shell.home / "replayer-runs").iterdir()
    document = json.loads(scene.shell.run("report", folder, "--format", "json").out)
    overall = document["summary"]["targets"][0]["overall"]
    assert 2.9 < overall["measured_s"] < 30  # far below a day
    assert all(row["time"]["max_ns"] < 30e9 for row in overall["ops"])
    scene.check_foreign()
    scene.tell(f"wall clock set by {step}", "local disk", ending)


@pytest.mark.parametrize(
    "work", [work if work in QUICK else pytest.param(work, marks=long) for work in WORKS]
)
def test_what_is_killed_at_a_random_moment_leaves_readable_records_and_only_its_own_folder(
    tmp_path: Path, work: str
) -> None:
    (tmp_path / "mount").mkdir()
    killed = kill_once(make_range(tmp_path / "home", tmp_path / "mount"), work, seed=1)
    assert killed.wrong == (), killed
