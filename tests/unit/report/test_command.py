import json
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path

import pytest

from replayer.cli import main
from tests.unit.runs import RunWriter, make_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = RunWriter(tmp_path / "run")
    for second in range(5):
        writer.transaction("page", [1_000_000] * 10, span=(second, second + 1))
    writer.call("page")
    return writer.write(make_run())


def test_a_run_is_printed_as_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("PASS  pages: no thresholds were set")


@pytest.mark.parametrize("form", ["json", "markdown", "csv", "junit"])
def test_every_form_goes_to_a_new_file(folder: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / "report"
    assert main(["report", str(folder), "--format", form, "-o", str(file)]) == 0
    assert "20261121T024839-ab12" in file.read_text()


def test_a_file_that_exists_is_not_overwritten(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "thesis.md"
    file.write_text("years of work")
    assert main(["report", str(folder), "-o", str(file)]) == 2
    assert file.read_text() == "years of work"
    assert "thesis.md: File exists" in capsys.readouterr().err


def test_several_runs_are_one_json_document_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder), str(folder), "--format", "json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["schema"] for line in lines] == ["replayer-run-1"] * 2


def test_several_runs_share_one_csv_header(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder), str(folder), "--format", "csv"]) == 0
    assert sum(line.startswith("run,") for line in capsys.readouterr().out.splitlines()) == 1


def test_several_runs_are_one_junit_file_with_a_suite_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder), str(folder), "--format", "junit"]) == 0
    found = ET.fromstring(capsys.readouterr().out)  # noqa: S314 - our own output
    assert [suite.tag for suite in found] == ["testsuite"] * 2
    for count in ("tests", "failures", "errors"):
        assert int(found.attrib[count]) == sum(int(suite.attrib[count]) for suite in found)


def test_a_run_that_was_killed_in_the_middle_of_a_line_is_reported_with_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = RunWriter(tmp_path / "run")
    for second in range(5):
        writer.transaction("page", [1_000_000] * 10, span=(second, second + 1))
    process = make_run().process.model_copy(update={"start_ticks": 1})
    folder = writer.write(make_run(status="running", health=None, ended=None, process=process))
    log = folder / "histograms.hlog"
    log.write_bytes(log.read_bytes()[:-7])
    assert main(["report", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("INCONCLUSIVE  pages")
    assert "the run was killed" in said
    assert "1 lines of the run folder were cut short" in said


def test_what_is_no_run_folder_is_refused_in_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"replayer: {tmp_path}: not a run folder")
    assert said[1].startswith("hint: ")


@pytest.mark.parametrize("command", ["compare", "report"])
@pytest.mark.parametrize(
    "words",
    [
        ["--format", "table", "--json"],
        ["--format", "table", "--html", "page.html"],
        ["-o", "text", "--html", "page.html"],
    ],
)
def test_forms_that_contradict_each_other_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: list[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    with suppress(SystemExit):  # argparse's own refusals
        assert main([command, str(folder), *words]) == 2
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
