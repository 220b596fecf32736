"""What recorders cost: taken from logs whose times are known."""

from pathlib import Path

import pytest

from replayer.capture.calibration import Calibration, as_recorded, measure_tracer
from tests.behaviour.probe_records import MAGIC, RECORD

BEFORE = Calibration(call_ns=0, gap_ns=390, spread=1000, method="measured before")
PROBE_NS = 200
TOOK_NS = 1_000


def fake_strace(folder: Path, lines: str) -> list[str]:
    """Return words that write a log, whatever follows them."""
    (folder / "lines").write_text(lines)
    return ["sh", "-c", f"cp {folder}/lines {folder}/log", "strace"]


def calls(count: int, step_ns: int, took_ns: int) -> str:
    return "".join(
        f"7 1795222977.{at * step_ns:09d} read(0, 0x7ffe, 0x1) = 0x1 <0.{took_ns:09d}>\n"
        for at in range(count)
    )


def test_calls_and_pauses_of_known_length_are_found(tmp_path: Path) -> None:
    words = fake_strace(tmp_path, calls(300, 20_000, 7_000))
    measured = measure_tracer(words, tmp_path / "log")
    assert measured is not None
    assert measured.gap_ns == 13_000
    assert measured.spread == 1000
    assert 0 <= measured.call_ns < 7_000
    assert "2000 calls of dd" in measured.method
    assert not (tmp_path / "log").exists()


def test_how_far_its_times_spread_is_their_mean_beside_the_shortest(tmp_path: Path) -> None:
    quick, slow = calls(300, 20_000, 10_000), calls(100, 40_000, 10_000).replace("977.", "978.")
    measured = measure_tracer(fake_strace(tmp_path, quick + "-\n" + slow), tmp_path / "log")
    assert measured is not None
    assert measured.document() == {
        "call_ns": measured.call_ns,
        "gap_ns": 10_000,
        "spread": round(1000 * (299 * 10 + 99 * 30) / 398 / 10),
    }


@pytest.mark.parametrize("lines", ["", calls(50, 20_000, 7_000), "no log\n" * 500])
def test_too_little_proves_nothing(tmp_path: Path, lines: str) -> None:
    assert measure_tracer(fake_strace(tmp_path, lines), tmp_path / "log") is None


def test_a_machine_without_the_program_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert measure_tracer(["true"], tmp_path / "log") is None


def probe_log(file: Path, gaps_ns: list[int]) -> Path:
    """Write calls of two tasks that take turns, so long after the ends of their last ones."""
    calls, times = [], [0, 0]
    for number, gap_ns in enumerate(gaps_ns):
        task = number % 2
        start_ns = times[task] + gap_ns + PROBE_NS
        times[task] = start_ns + TOOK_NS
        head = (RECORD.size, 0, 0, 0, 0, 0, 7 + task, 0, 0)
        calls.append(RECORD.pack(*head, start_ns, TOOK_NS, 0, PROBE_NS))
    file.write_bytes(MAGIC + bytes(8) + b"".join(calls))
    return file


def test_calls_of_the_recording_that_follow_at_once_say_what_the_probe_added(
    tmp_path: Path,
) -> None:
    found = as_recorded(BEFORE, probe_log(tmp_path / "log", [9_000, 9_000, 500, 500] * 1_000))
    assert found.gap_ns == 500
    assert "at most 500 ns" in found.method


@pytest.mark.parametrize("gaps_ns", [[500] * 900, [2_000] * 4_000, [100] * 4_000, []])
def test_too_few_of_them_and_programs_that_always_compute_say_nothing(
    tmp_path: Path, gaps_ns: list[int]
) -> None:
    assert as_recorded(BEFORE, probe_log(tmp_path / "log", gaps_ns)) == BEFORE


def test_a_damaged_recording_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"no log")
    assert as_recorded(BEFORE, tmp_path / "log") == BEFORE
    assert as_recorded(BEFORE, tmp_path / "none") == BEFORE
