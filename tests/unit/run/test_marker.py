"""Whose a run's folder is, and how a kept one passes from run to run."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from replayer._native import Sandbox
from replayer.cli.clean import open_folder, refuse_living
from replayer.errors import ReplayerError
from replayer.measure.run import Process, this_process
from replayer.run.marker import MARKER, Owner, hand_on, marker_note, owner_in, take_over


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that a run kept whose process has ended."""
    note = json.loads(marker_note("20261121T000000-abcd", "0" * 64, "tiny.yaml"))
    note["process"] = {"pid": 1, "start_ticks": 0, "boot": "another"}
    return Path(Sandbox.create(str(tmp_path), note["run"], json.dumps(note)).path)


@pytest.fixture
def other() -> Iterator[Process]:
    """Another process that is alive."""
    with subprocess.Popen(["sleep", "60"]) as process:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        mine = {"pid": process.pid, "start_ticks": int(fields[19])}
        yield this_process().model_copy(update=mine)
        process.kill()


def note_of(process: Process) -> str:
    note = json.loads(marker_note("20261122T000000-beef", "0" * 64, "tiny.yaml"))
    return json.dumps({**note, "process": process.model_dump(exclude={"pid_namespace"})})


def test_a_folder_that_is_used_again_is_not_removed_under_its_new_run(
    folder: Path, other: Process
) -> None:
    refuse_living(open_folder(folder))
    take_over(str(folder), note_of(other))
    with pytest.raises(ReplayerError, match=f"still running \\(process {other.pid}\\)"):
        refuse_living(open_folder(folder))
    assert list(folder.iterdir()) == [folder / MARKER]


def test_two_runs_at_once_do_not_use_one_folder(folder: Path, other: Process) -> None:
    take_over(str(folder), note_of(other))
    with pytest.raises(ReplayerError, match=f"another run is using it \\(process {other.pid}"):
        take_over(str(folder), note_of(this_process()))
    assert owner_in(Sandbox.open(str(folder)).note) == Owner(other)


def test_a_folder_that_was_handed_on_is_free_though_its_process_lives(
    folder: Path, other: Process
) -> None:
    note = note_of(other)
    take_over(str(folder), note)
    hand_on(str(folder), note)
    refuse_living(open_folder(folder))
    take_over(str(folder), note_of(this_process()))
    assert owner_in(Sandbox.open(str(folder)).note) is not None


def begun_elsewhere() -> dict[str, object]:
    """What a marker says whose run was begun in another PID namespace of this machine."""
    note = json.loads(marker_note("20261122T000000-beef", "0" * 64, "tiny.yaml"))
    return {**note, "pid_namespace": note["pid_namespace"] + 1}


@pytest.mark.parametrize("change", [{}, {"host": "0123456789ab"}])
def test_a_run_that_cannot_be_seen_from_here_may_go_on(
    folder: Path, change: dict[str, object]
) -> None:
    note = json.dumps({**begun_elsewhere(), **change})
    take_over(str(folder), note)
    where = "on another machine" if change else "in another PID namespace"
    with pytest.raises(
        ReplayerError, match=f"its run was started {where}.* and may still be running"
    ):
        refuse_living(open_folder(folder))
    with pytest.raises(ReplayerError, match=f"its last run was started {where}") as refused:
        take_over(str(folder), note_of(this_process()))
    assert f"replayer clean --force {folder}" in refused.value.hint
    hand_on(str(folder), note)
    refuse_living(open_folder(folder))
    take_over(str(folder), note_of(this_process()))


def test_a_marker_that_names_no_namespace_is_judged_by_its_process(
    folder: Path, other: Process
) -> None:
    older = json.loads(note_of(other))
    del older["pid_namespace"]
    take_over(str(folder), json.dumps(older))
    with pytest.raises(ReplayerError, match=f"still running \\(process {other.pid}\\)"):
        refuse_living(open_folder(folder))


def test_what_was_begun_before_the_machine_was_started_anew_is_over_in_every_namespace(
    folder: Path,
) -> None:
    note = begun_elsewhere()
    assert isinstance(note["process"], dict)
    take_over(str(folder), json.dumps({**note, "process": {**note["process"], "boot": "before"}}))
    refuse_living(open_folder(folder))
    take_over(str(folder), note_of(this_process()))


def test_the_namespace_stands_where_older_readers_do_not_look() -> None:
    assert set(json.loads(marker_note("a", "0" * 64, "b"))["process"]) == {
        *("pid", "start_ticks", "boot")
    }


def test_a_process_uses_its_own_folder_again(folder: Path) -> None:
    take_over(str(folder), note_of(this_process()))
    take_over(str(folder), note_of(this_process()))


def test_a_folder_without_a_marker_is_taken_by_nobody(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="marker"):
        take_over(str(tmp_path), "{}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("note", ["", "{", "[]", "{}", '{"process": 1}'])
def test_a_note_that_was_cut_short_names_nobody(note: str) -> None:
    assert owner_in(note) is None
