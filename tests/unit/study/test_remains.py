"""What attempts at steps leave behind: results that nobody has noted, and folders on targets."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.measure.run import Process, this_process
from replayer.run.interruption import Interruption
from replayer.study import flow
from replayer.study import journal as journals
from replayer.study.journal import Attempt, Journal, create_journal
from tests.unit.runs import RunWriter, make_run
from tests.unit.study.states import make_state

GONE = Process(pid=1, start_ticks=0, boot="another boot")


def write_attempt(path: Path, status: str, process: Process = GONE) -> None:
    writer = RunWriter(path)
    for second in range(3):
        writer.transaction("a", [1000] * 30, span=(second, second + 1))
    writer.call("a")
    writer.write(make_run(status=status, process=process))


def make_journal(path: Path) -> Journal:
    return Journal(path, make_state("own"))


def test_an_attempt_that_ended_after_its_study_was_killed_is_adopted(tmp_path: Path) -> None:
    write_attempt(tmp_path / "writes-1", "interrupted")
    write_attempt(tmp_path / "writes-2", "finished")
    journal = make_journal(tmp_path)
    journals.adopt(journal, "writes", print)
    (attempt,) = journal.state.attempts["writes"]
    assert (attempt.folder, attempt.done, attempt.code) == ("writes-2", True, 0)
    assert journal.is_done("writes")


def test_attempts_at_a_step_whose_name_begins_alike_are_not_adopted(tmp_path: Path) -> None:
    write_attempt(tmp_path / "writes-warm-1", "finished")
    journal = make_journal(tmp_path)
    journals.adopt(journal, "writes", print)
    assert journal.last("writes") is None


def test_a_folder_that_takes_no_notes_is_told_with_exit_code_3(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "gone")
    with pytest.raises(ReplayerError, match="cannot be written: No such file") as refusal:
        journal.note("writes", Attempt(folder="writes-1", done=True))
    assert refusal.value.exit_code == 3


def test_what_did_not_end_well_is_not_adopted(tmp_path: Path) -> None:
    write_attempt(tmp_path / "writes-1", "interrupted")
    (tmp_path / "writes-2").mkdir()
    journal = make_journal(tmp_path)
    journals.adopt(journal, "writes", print)
    assert not journal.state.attempts


def test_a_step_that_outlives_its_study_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "ORPHAN_S", 0.2)
    write_attempt(tmp_path / "writes-1", "running", this_process())
    said: list[str] = []
    with pytest.raises(ReplayerError, match="is still running"):
        journals.adopt(make_journal(tmp_path), "writes", said.append)
    assert "writes-1 is still ending" in said[0]


def test_a_step_that_was_begun_in_another_pid_namespace_is_named_and_not_waited_for(
    tmp_path: Path,
) -> None:
    own = this_process()
    assert own.pid_namespace is not None
    elsewhere = own.model_copy(update={"pid_namespace": own.pid_namespace + 1})
    write_attempt(tmp_path / "writes-1", "running", elsewhere)
    said: list[str] = []
    journal = make_journal(tmp_path)
    journals.adopt(journal, "writes", said.append)
    (text,) = said
    assert text == (
        "writes-1 was started in another PID namespace (a container?): "
        "end it if it is still running"
    )
    assert not journal.state.attempts


def test_folders_that_a_step_left_are_named(tmp_path: Path) -> None:
    run, target = tmp_path / "writes-1", tmp_path / "mount"
    write_attempt(run, "finished")
    target.mkdir()
    assert journals.find_left(run, [f"mine={target}"]) == ()
    left = target / f"replayer-{json.loads((run / 'run.json').read_text())['id']}"
    left.mkdir()
    assert journals.find_left(run, [f"mine={target}"]) == (str(left),)


@pytest.mark.parametrize(("status", "cut"), [("running", True), ("finished", False)])
def test_a_step_whose_time_is_over_is_asked_to_end_unless_it_removes_its_folders(
    tmp_path: Path, status: str, *, cut: bool
) -> None:
    write_attempt(tmp_path / "writes-1", status)
    process = subprocess.Popen(["/bin/sleep", "1"])
    found = flow._wait(process, Interruption(), tmp_path / "writes-1", limit_s=0.0)  # noqa: SLF001
    assert found == cut
    assert (process.returncode == 0) != cut


@pytest.mark.parametrize(
    ("status", "done", "code"), [("finished", True, 0), ("interrupted", False, None)]
)
def test_a_step_that_measured_all_before_the_user_ended_the_study_is_done(
    tmp_path: Path, status: str, *, done: bool, code: int | None
) -> None:
    write_attempt(tmp_path / "writes-1", status)
    interruption = Interruption()
    interruption.ask()
    attempt = flow._judged(  # noqa: SLF001
        tmp_path / "writes-1", -signal.SIGINT, interruption, None, cut=False
    )
    assert (attempt.done, attempt.code) == (done, code)


def test_a_study_whose_folder_cannot_be_made_blames_the_environment(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state = make_state("a", quick=True)
    with pytest.raises(ReplayerError, match="cannot be created") as caught:
        create_journal(tmp_path / "file/study", state)
    assert caught.value.exit_code == 3
