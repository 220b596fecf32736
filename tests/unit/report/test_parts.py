"""A part of a tree is never taken for the whole: check, run, and every form of report say so."""

from pathlib import Path

import pytest

from replayer.cli import main
from replayer.measure.record import load_run
from replayer.measure.run import DatasetPart, PlanFacts
from replayer.report.composition import compose
from replayer.report.description import describe_run
from replayer.report.html import render_html
from replayer.report.json_form import render_json
from replayer.report.markdown import render_markdown
from replayer.report.table import render_table
from replayer.scenario.loading import load_scenario
from tests.unit.runs import FINGERPRINT, RunWriter, make_run

SAYS = "linux: 10 % of the directories of the whole (--set linux.part=100% takes all)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan = PlanFacts(
        name="kernel-untar",
        fingerprint=FINGERPRINT,
        seed=1,
        scenario="kernel-untar",
        parts=(DatasetPart(dataset="linux", percent=10),),
    )
    writer = RunWriter(tmp_path / "run")
    writer.transaction("untar", [5_000_000_000] * 3)
    return writer.write(make_run(plan=plan))


def test_every_form_of_report_says_which_part_was_used(folder: Path) -> None:
    record = load_run(folder)
    document = compose(record)
    assert ("a part only", SAYS) in list(describe_run(document))
    assert SAYS in render_table(document)
    assert SAYS in render_markdown(document)
    page = render_html([record])
    head = page[page.index("<header>") : page.index("</header>")]
    assert SAYS in head
    assert '"percent": 10' in render_json(document)


def test_check_says_it_and_how_to_have_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "kernel-untar"]) == 0
    assert SAYS in " ".join(capsys.readouterr().out.split())
    assert main(["check", "kernel-untar", "--set", "linux.part=100%"]) == 0
    assert "a part only" not in capsys.readouterr().out


def test_all_of_a_tree_is_no_part() -> None:
    assert load_scenario("kernel-untar", []).parts == {"linux": 10}
    assert load_scenario("kernel-untar", ["linux.part=100%"]).parts == {}
    assert load_scenario("small-reads", []).parts == {}
