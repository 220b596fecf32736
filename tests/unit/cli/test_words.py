"""Command lines as they come from scripts: with variables that are not set."""

import signal
from pathlib import Path

import pytest

from replayer.cli import main, parse_words


@pytest.mark.parametrize(
    "words",
    [
        ("clean", ""),
        ("doctor", "--no-probe", ""),
        ("report", ""),
        ("capture", "-o", "trace", "--root", "", "--", "true"),
        ("run", "small-reads", "-o", ""),
        ("run", "small-reads", "--junit="),
    ],
)
def test_an_empty_word_is_not_taken_for_the_working_directory(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert "hint: is a variable not set?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_recorded_command_and_a_note_may_have_empty_words() -> None:
    recorded = parse_words(["capture", "-o", "trace", "--root", ".", "--", "touch", ""])
    assert recorded.words[-1] == ""
    assert parse_words(["import", "log", "-o", "t", "--root", "/", "--note", ""]).note == ""


@pytest.mark.parametrize("value", ["-1s", "-.5s", "-90"])
def test_a_value_below_zero_is_refused_as_a_value(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "small-reads", "-t", value]) == 2
    assert f"must be whole seconds, such as 90, 90s, 5m or 1h20m, got '{value}'" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(("value", "unit"), [("5parsec", "parsec"), ("10ms", "ms")])
def test_a_run_time_names_its_unknown_unit_and_the_known_ones(
    value: str, unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "small-reads", "-t", value]) == 2
    assert f"'{value}' has the unknown unit '{unit}', known units: h, m, s" in (
        capsys.readouterr().err
    )


def test_a_program_that_calls_the_command_line_keeps_its_signals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        assert main(["scenarios"]) == 0
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        capsys.readouterr()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("replayer.cli.scenarios.run", lambda _: signal.raise_signal(signal.SIGINT))
    assert main(["scenarios"]) == 4
    assert signal.getsignal(signal.SIGINT) is handler
    assert capsys.readouterr().err == "replayer: interrupted\n"
