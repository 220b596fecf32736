import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from replayer.errors import ReplayerError
from replayer.fio.recorder import FioRecorder
from replayer.fio.snapshot import JobState, Share, Snapshot
from replayer.measure.hlog import Segment
from replayer.measure.record import load_run, read_events
from replayer.measure.run import Process, finish, this_process
from replayer.measure.runfolder import RunFolder, create_run_folder
from tests.unit.runs import RunWriter, make_run


def test_a_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    run = make_run()
    folder = RunWriter(tmp_path).write(run)
    record = load_run(folder)
    assert record.run == run
    assert record.status == "finished"
    assert record.losses.total == 0


def test_a_run_whose_process_lives_is_running(tmp_path: Path) -> None:
    folder = RunWriter(tmp_path).write(make_run(status="running"))
    assert load_run(folder).status == "running"


def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    code = "from replayer.measure import run; print(run.this_process().model_dump_json())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    process = Process.model_validate_json(said)
    folder = RunWriter(tmp_path).write(make_run(status="running", process=process))
    assert load_run(folder).status == "killed"


def test_of_a_run_in_another_pid_namespace_it_is_not_said_that_it_was_killed(
    tmp_path: Path,
) -> None:
    own = this_process()
    assert own.pid_namespace is not None
    elsewhere = {"pid": 999_999_999, "pid_namespace": own.pid_namespace + 1}
    run = make_run(status="running", process=own.model_copy(update=elsewhere))
    assert load_run(RunWriter(tmp_path / "run").write(run)).status == "running"


def test_a_process_number_that_was_given_away_again_is_not_the_run(tmp_path: Path) -> None:
    ours = this_process()
    other = ours.model_copy(update={"start_ticks": ours.start_ticks - 1})
    folder = RunWriter(tmp_path).write(make_run(status="running", process=other))
    assert load_run(folder).status == "killed"


def test_a_folder_cut_at_every_byte_of_its_events_still_reads(tmp_path: Path) -> None:
    events = [{"t_s": second, "kind": "warning", "message": "ü"} for second in range(5)]
    file = RunWriter(tmp_path).write(make_run(), events) / "events.jsonl"
    whole = file.read_bytes()
    for cut in range(len(whole) + 1):
        file.write_bytes(whole[:cut])
        found, lost = read_events(file)
        assert len(found) == whole[:cut].count(b"\n")
        assert lost == (cut > 0 and not whole[:cut].endswith(b"\n"))


def test_a_folder_without_run_json_is_refused_and_the_newest_run_named(tmp_path: Path) -> None:
    RunWriter(tmp_path / "20261121T024839-ab12").write(make_run())
    RunWriter(tmp_path / "20261122T024839-ab12").write(make_run())
    with pytest.raises(ReplayerError, match="not a run folder") as refusal:
        load_run(tmp_path)
    assert "20261122T024839-ab12" in refusal.value.hint


@pytest.mark.parametrize("name", ["histograms.hlog", "timeline.csv", "events.jsonl"])
def test_a_file_that_cannot_be_read_at_all_is_named(tmp_path: Path, name: str) -> None:
    folder = RunWriter(tmp_path / "run").write(make_run())
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(ReplayerError, match=f"{name}: cannot be read: Is a directory"):
        load_run(folder)


def test_another_format_is_refused_with_both_numbers(tmp_path: Path) -> None:
    folder = RunWriter(tmp_path).write(make_run())
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**document, "format": 7}))
    with pytest.raises(ReplayerError, match="run format 7, this version reads format 1"):
        load_run(folder)


def test_a_changed_run_json_is_refused_with_the_place(tmp_path: Path) -> None:
    folder = RunWriter(tmp_path).write(make_run())
    document = json.loads((folder / "run.json").read_text())
    document["load"]["users"] = "many"
    (folder / "run.json").write_text(json.dumps(document))
    with pytest.raises(ReplayerError, match=r"load\.users"):
        load_run(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", "\x00"])
def test_what_is_not_a_run_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ReplayerError):
        load_run(tmp_path)


def test_a_run_folder_is_named_by_its_run_and_made_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = create_run_folder()
    assert folder.path == tmp_path / "replayer-runs" / folder.id
    assert folder.path.is_dir()


def test_a_chosen_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ReplayerError, match=r"must be empty, this one has thesis\.tex"):
        create_run_folder(tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_chosen_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReplayerError, match="cannot be created as a run folder"):
        create_run_folder(tmp_path / "file")


def test_run_json_is_whole_at_any_moment(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "run")
    run = make_run(status="running")
    folder.write_run(run)
    before = (folder.path / "run.json").stat().st_ino
    folder.write_run(finish(run, "finished"))
    assert (folder.path / "run.json").stat().st_ino != before  # replaced, not rewritten
    assert [found.name for found in folder.path.iterdir()] == ["run.json"]


def test_events_of_two_writers_do_not_mix(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "run")
    for number in range(3):
        folder.append_event("warning", number, {"message": "first\nsecond"})
        with (folder.path / "events.jsonl").open("a") as other:
            other.write('{"t_s": 0.5, "kind": "phase"}\n')
    events, lost = read_events(folder.path / "events.jsonl")
    assert [event["kind"] for event in events] == ["warning", "phase"] * 3
    assert lost == 0


@pytest.fixture
def full(tmp_path: Path) -> Iterator[RunFolder]:
    """The folder of a run that goes on, on a disk that is full."""
    room = 64 * 1024
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(tmp_path)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = create_run_folder(tmp_path)
    folder.path.joinpath("run.json").write_text(
        make_run(status="running").model_dump_json(indent=2)
    )
    (tmp_path / "fill").write_bytes(b"x" * (room - 2 * 4096))
    yield folder
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_run_folder_is_an_error_of_the_environment_and_keeps_what_it_has(
    full: RunFolder,
) -> None:
    huge = make_run(status="failed", failure="x" * 20_000)
    with pytest.raises(ReplayerError, match="No space left on device") as refusal:
        full.write_run(huge)
    assert refusal.value.exit_code == 3
    assert load_run(full.path).run.status == "running"
    assert sorted(found.name for found in full.path.iterdir()) == ["fill", "run.json"]


def test_a_run_that_ends_on_a_full_disk_has_failed_and_was_not_killed(
    full: RunFolder,
) -> None:
    ended = make_run(losses=("x" * 20_000,))
    told, refused = full.write_end(ended)
    assert "No space left on device" in str(refused)
    assert (told.status, told.failure) == ("failed", str(refused))
    assert told.losses == ended.losses
    record = load_run(full.path)
    assert (record.status, record.run.failure) == ("failed", str(refused))
    assert load_run(full.path, told).run == told


def test_a_run_that_ends_where_there_is_room_is_told_as_it_ended(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "run")
    assert folder.write_end(make_run()) == (make_run(), None)
    assert load_run(folder.path).run == make_run()


def test_of_a_folder_that_is_gone_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReplayerError, match="not a run folder"):
        load_run(tmp_path / "gone", make_run())


def test_what_fio_measures_is_refused_where_there_is_no_room_for_it(
    full: RunFolder,
) -> None:
    (full.path / "fill").unlink()
    recorder = FioRecorder(full.path)
    with suppress(OSError), (full.path / "fill").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    random = np.random.default_rng(1)  # what can be compressed would find room in a page
    share = Share(1, 1, {50 * at: int(random.integers(1, 10**6)) for at in range(1, 4000)}, 1000)
    state = JobState("job", {"read": share}, error=0, errors=0, steady=None)
    recorder.begin_segment(Segment(0, 0, "measured"), 1, ())
    with pytest.raises(ReplayerError, match="run folder cannot be written") as refusal:
        recorder.take(Snapshot(jobs=(state,)))
    assert refusal.value.exit_code == 3
    del recorder, refusal
    gc.collect()  # what has files open keeps the disk
