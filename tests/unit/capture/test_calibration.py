"""What strace costs: taken from a log whose times are known."""

from pathlib import Path

import pytest

from replayer.capture.calibration import measure_tracer


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
