"""The manual page: whole, and as manual pages are written; readers of them are there at night."""

import shutil
import subprocess
from inspect import cleandoc
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.cli._parsers import KNOWN, ProgramParser


@pytest.fixture
def page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["man"]) == 0
    path = tmp_path / "replayer.1"
    path.write_text(capsys.readouterr().out)
    return path


def rendered(*words: str) -> str:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_has_a_section_for_each_command(page: Path) -> None:
    text = page.read_text()
    assert text.startswith((".TH", "'\\\"", '.\\"'))
    for name in KNOWN:
        assert f"replayer {name}".upper() in text.upper().replace("\\-", "-")


@pytest.mark.nightly
def test_the_page_has_each_command_option_and_example_as_it_is_typed(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANWIDTH", "100")
    text = rendered("man", "--warnings", "-l", str(page)).replace("\u2010\n", "")
    lines = [line.strip() for line in text.splitlines()]
    for name, parser in ProgramParser(KNOWN).commands.items():
        assert f"REPLAYER {name.upper()}" in lines
        for line in cleandoc(KNOWN[name].examples).splitlines():
            assert line.strip() in lines
        for option in parser.own_options:
            assert option in text


@pytest.mark.nightly
def test_the_page_has_no_mistakes_of_form(page: Path) -> None:
    assert rendered("mandoc", "-T", "lint", "-W", "warning", str(page)) == ""


@pytest.mark.nightly
def test_groff_has_no_warnings(page: Path) -> None:
    assert rendered("groff", "-ww", "-man", "-Tutf8", "-K", "utf8", "-z", str(page)) == ""


@pytest.mark.nightly
def test_the_page_fits_into_80_columns(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANWIDTH", "80")
    lines = rendered("man", "-l", str(page)).splitlines()
    assert [line for line in lines if len(line) > 80] == []
