"""What commands print into a pipe is no wider than COLUMNS asks for."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.cli import main
from replayer.cli._parsers import KNOWN
from replayer.report.style import Style, fold, text_width

TOLD = [
    ("scenarios",),
    ("study",),
    ("study", "B"),
    ("show", "wordpress/upload"),
    ("check", "wordpress-pages"),
    ("doctor", "--no-probe", "."),
    ("doctor", "--no-probe", "/sys"),
]


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if text_width(line) > 80]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("words", TOLD, ids=" ".join)
def test_a_command_prints_no_line_wider_than_columns(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out.count("\n") > 3
    assert too_wide(told.out + told.err) == []


@pytest.mark.parametrize("name", KNOWN)
def test_the_help_of_a_command_is_no_wider_than_columns(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        main([name, "--help"])
    assert ending.value.code == 0
    assert too_wide(capsys.readouterr().out) == []


@given(st.lists(st.text(" abcdefghij", max_size=300)), st.none() | st.integers(0, 30))
def test_folding_keeps_every_word_and_breaks_none(lines: list[str], indent: int | None) -> None:
    folded = list(fold(lines, Style(80), indent))
    assert " ".join(folded).split() == " ".join(lines).split()
    assert all(len(line.split()) == 1 for line in too_wide("\n".join(folded)))


def test_what_goes_on_stands_below_its_text() -> None:
    assert list(fold(["label   " + "word " * 20], Style(80))) == [
        "label   " + " ".join(["word"] * 14),
        "        " + " ".join(["word"] * 6),
    ]


def test_a_path_is_not_broken(tmp_path: Path) -> None:
    path = f"{tmp_path}/{'long-' * 30}"
    assert path in "\n".join(fold([f"run folder  some words before {path}"], Style(80)))
