"""Run folders of which a file of figures is missing, empty or cut: each is told, wherever read."""

from pathlib import Path

import pytest

from replayer.cli import main
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import this_process, with_results
from replayer.measure.summarise import summarise
from replayer.report.comparing import compare
from replayer.report.composition import compose
from replayer.report.html import render_html
from tests.unit.runs import RunWriter, make_load, make_run, make_target

HISTOGRAMS, TIMELINE = "histograms.hlog", "timeline.csv"
EITHER = pytest.mark.parametrize("name", [HISTOGRAMS, TIMELINE])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two targets with two seconds each, and its summary in run.json."""
    writer = RunWriter(tmp_path / "run")
    for target in (0, 1):
        for second in (0, 1):
            span = (second, second + 1)
            writer.transaction("page", [10**6] * 50, f"{target}/0", span)
            writer.record(f"{target}/0/measured/page/read/ok/expected", [1000] * 50, span, 10**6)
    run = make_run(targets=(make_target(), make_target(1, "other")))
    summary = summarise(load_run(writer.write(run)))
    return writer.write(with_results(run, summary=summary, verdict="pass"))


def as_killed(folder: Path) -> None:
    gone = this_process().model_copy(update={"start_ticks": 1})
    run = make_run(status="running", ended=None, process=gone)
    (folder / "run.json").write_text(run.model_dump_json())


def cut(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))


def only(record: RunRecord) -> str:
    (says,) = record.damage
    return says


def test_a_whole_folder_has_no_damage(folder: Path) -> None:
    assert load_run(folder).damage == ()
    as_killed(folder)
    assert load_run(folder).damage == ()


@EITHER
def test_a_file_that_is_missing_empty_or_cut_is_told(folder: Path, name: str) -> None:
    cut(folder / name)
    assert f"{name} has at least 50 results too few" in only(load_run(folder))
    (folder / name).write_text("")
    assert f"{name} is empty" in only(load_run(folder))
    (folder / name).unlink()
    assert f"{name} is missing" in only(load_run(folder))


def test_events_that_lack_how_a_round_ended_are_told(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", [10**6] * 50)
    ending = {"t_s": 0.9, "kind": "ending", "target": 0, "round": 0, "unbegun": 40}
    phase = {"t_s": 0.0, "kind": "phase", "phase": "measured", "target": 0, "round": 0}
    run = make_run(load=make_load(loop="open"))
    summary = summarise(load_run(writer.write(run, [phase, ending])))
    run = with_results(run, summary=summary, verdict="inconclusive")
    assert load_run(writer.write(run, [phase, ending])).damage == ()
    record = load_run(writer.write(run, [phase]))
    assert "events.jsonl does not say how each round ended" in only(record)
    assert compose(record).verdict.outcome == "inconclusive"
    assert "events.jsonl is empty" in only(load_run(writer.write(run)))
    (record.folder / "events.jsonl").unlink()
    assert "events.jsonl is missing" in only(load_run(record.folder))


def test_where_both_are_missing_the_summary_tells_it(folder: Path) -> None:
    for name in (HISTOGRAMS, TIMELINE):
        (folder / name).unlink()
    assert len(load_run(folder).damage) == 2


@EITHER
def test_of_a_killed_run_an_interval_may_be_half_written_but_no_file_be_missing(
    folder: Path, name: str
) -> None:
    as_killed(folder)
    cut(folder / name)
    assert load_run(folder).damage == ()
    (folder / name).unlink()
    assert f"{name} is missing" in only(load_run(folder))


def test_a_run_that_failed_before_it_measured_lacks_nothing(folder: Path) -> None:
    (folder / "run.json").write_text(make_run(status="failed").model_dump_json())
    for name in (HISTOGRAMS, TIMELINE):
        (folder / name).unlink()
    assert load_run(folder).damage == ()


@EITHER
def test_reports_and_comparisons_say_it(folder: Path, name: str) -> None:
    (folder / name).unlink()
    record = load_run(folder)
    document = compose(record)
    assert document.verdict.outcome == "inconclusive"
    assert only(record) in document.verdict.reasons
    assert not any("no transaction succeeded" in reason for reason in document.verdict.reasons)
    assert f"run: {only(record)}" in compare([record]).cautions
    assert only(record) in render_html([record])


def test_without_a_timeline_no_difference_is_claimed(folder: Path) -> None:
    (folder / TIMELINE).unlink()
    compared = compare([load_run(folder)]).compared
    claims = {standing.claim for item in compared for standing in item.standings}
    assert claims == {"best", "too few seconds"}


@EITHER
def test_costs_are_refused(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    prices = folder.parent / "prices.yaml"
    prices.write_text("currency: EUR\nstored_gb: 1\ntargets: {local: {per_gb_read: 2}}\n")
    words = ["cost", str(folder), "--prices", str(prices)]
    assert main(words) == 0
    (folder / name).unlink()
    assert main(words) == 2
    assert f"{name} is missing" in capsys.readouterr().err
