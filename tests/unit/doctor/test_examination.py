"""The examination of real folders: facts, a real probe, and nothing left behind."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from replayer._native import Histogram
from replayer.cli import main
from replayer.doctor.examination import examine, render_examination
from replayer.doctor.probe import Probe, _probed, run_probe
from replayer.errors import ReplayerError
from replayer.run.interruption import Interruption
from replayer.run.watchdog import ask


def test_a_probe_times_every_call_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    found = run_probe(tmp_path, Interruption(), 0.3)
    assert [op.name for op in found.ops] == [
        "stat of a file", "stat of a missing name", "list of 64 files", "open of a file",
        "read of 4 KiB", "create", "write of 4 KiB", "fsync", "close after it", "unlink",
    ]  # fmt: skip
    assert all(op.count > 0 and op.errors == 0 for op in found.ops)
    assert all(0 < (op.p50_ns or 0) <= (op.max_ns or 0) for op in found.ops)
    supported = [op for op in found.ops if op.p95_ns is not None]
    assert all((op.p50_ns or 0) <= (op.p95_ns or 0) <= (op.max_ns or 0) for op in supported)
    assert [op.name for op in supported] == [op.name for op in found.ops if op.count >= 20]
    counts = {op.name: op.count for op in found.ops}
    assert counts["list of 64 files"] < 1.5 * counts["read of 4 KiB"]  # a listing, not its calls
    assert found.hung == ()
    assert found.left is None
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("calls", "p95_ns"), [(0, None), (19, None), (20, 1000)])
def test_a_probe_of_few_calls_has_no_p95(calls: int, p95_ns: int | None) -> None:
    times = Histogram()
    times.record(1000, calls)
    found = _probed("fsync", times, Counter())
    assert (found.count, found.p95_ns) == (calls, p95_ns)
    assert found.p50_ns == (1000 if calls else None)


def test_an_examination_says_what_is_mounted_and_what_a_write_is_worth(tmp_path: Path) -> None:
    found = examine(tmp_path, Interruption())
    text = render_examination(found)
    assert found.probe is None
    assert str(tmp_path) in text
    assert found.mount.filesystem in text
    assert found.guarantee.source in " ".join(text.split())


def test_the_command_that_removes_what_is_left_is_one_that_works(tmp_path: Path) -> None:
    left = "/mnt/my share/replayer-doctor-0123abcd"
    probe = Probe(seconds=0.1, ops=(), hung=(), left=left)
    found = examine(tmp_path, Interruption()).model_copy(update={"probe": probe})
    assert f"remove it with: replayer clean '{left}'" in render_examination(found)


def test_without_a_probe_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path.stat().st_mtime_ns
    assert main(["doctor", "--no-probe", "--json", str(tmp_path)]) == 0
    assert tmp_path.stat().st_mtime_ns == before
    (found,) = json.loads(capsys.readouterr().out)
    assert found["mount"]["path"] == str(tmp_path)
    assert found["probe"] is None


@pytest.mark.parametrize("path", ["/", "/proc", "/sys"])
def test_the_system_is_no_place_for_a_probe(path: str) -> None:
    with pytest.raises(ReplayerError, match="cannot be a target"):
        run_probe(Path(path), Interruption(), 0.1)


def test_a_path_that_cannot_be_examined_keeps_no_other_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    assert main(["doctor", "--no-probe", "--json", str(nowhere), str(tmp_path)]) == 2
    told = capsys.readouterr()
    (found,) = json.loads(told.out)
    assert found["mount"]["path"] == str(tmp_path)
    assert str(nowhere) in told.err


def test_what_cannot_be_probed_is_told_of_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--json", "/proc"]) == 2
    told = capsys.readouterr()
    (found,) = json.loads(told.out)
    assert found["mount"]["filesystem"] == "proc"
    assert found["probe"] is None
    assert "cannot be a target" in told.err


def test_what_does_not_exist_is_refused_in_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(tmp_path / "nowhere")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_mount_that_does_not_answer_is_given_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replayer.run.watchdog.ANSWER_S", 0.05)
    with pytest.raises(ReplayerError, match="did not answer"):
        ask(tmp_path, lambda: time.sleep(1))


def test_who_is_interrupted_does_not_wait_long_for_a_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replayer.run.watchdog.HASTE_S", 0.05)
    interruption = Interruption()
    interruption.ask()
    with pytest.raises(ReplayerError, match="did not answer"):
        ask(tmp_path, lambda: time.sleep(1), interruption)
